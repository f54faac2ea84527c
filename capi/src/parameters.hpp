// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "growpage/core/status.hpp"
#include "growpage/growpage.h"
#include "growpage/policy/any_policy.hpp"

namespace growpage::capi {

/// One parameter of a policy: its name and where it is.
struct Parameter {
  using Place = std::variant<double*, float*, std::int32_t*, std::uint64_t*, bool*, ScoreKind*,
                             CompactionStrategy*, SharedPages*>;
  const char* name = nullptr;
  Place place;

  [[nodiscard]] std::int32_t kind() const noexcept {
    return place.index() < 2 ? GROWPAGE_PARAMETER_DOUBLE : GROWPAGE_PARAMETER_INT;
  }
  Status set(double value) const;
  Status set(std::int64_t value) const;
  void get(double& value) const noexcept;
  void get(std::int64_t& value) const noexcept;
};

/// All parameters of a policy, in the order in which they are listed.
class Parameters {
 public:
  explicit Parameters(AnyPolicy& policy);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const Parameter& operator[](std::size_t i) const noexcept { return all_[i]; }
  /// invalid_argument when there is none of this name and kind.
  Status find(const char* name, std::int32_t kind, Parameter& out) const;

 private:
  template <class P>
  void list(P& policy);
  void list_retention(RetentionOptions& options);
  void add(const char* name, Parameter::Place place) noexcept { all_[size_++] = {name, place}; }

  std::array<Parameter, 24> all_{};
  std::size_t size_ = 0;
};

}  // namespace growpage::capi
