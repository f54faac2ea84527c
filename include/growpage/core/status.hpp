// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "growpage/core/config.hpp"

namespace growpage {

/// What a call answered. Values are pinned: they are the C ABI's `int32_t` statuses.
/// 0 is success, > 0 is retryable (nothing is wrong; the state did not change), < 0 is an error.
enum class StatusCode : std::int32_t {
  ok = 0,

  out_of_pages = 1,       ///< no free and no evictable page now; retry after a release or a fence
  out_of_sequences = 2,   ///< every sequence slot is taken
  out_of_slots = 3,       ///< every query-summary slot is taken
  at_capacity = 4,        ///< the sequence's pages are full: a capacity boundary
  out_of_fences = 5,      ///< every fence is open
  out_of_host_pages = 6,  ///< swap space is full
  busy = 7,               ///< the sequence is under compaction or swap; retry after its fence

  invalid_argument = -1,   ///< a value outside what is allowed; the detail names all three
  stale_id = -2,           ///< the id's object is gone (generation mismatch) or never was
  behind_compaction = -3,  ///< rollback would cross a compaction, whose evicted rows are gone
  request_too_large = -4,  ///< can never fit, however long it waits
  unsupported = -5,        ///< a valid combination this build or backend does not offer
  protocol_error = -6,     ///< a call out of order, e.g. complete() without schedule()
  out_of_memory = -7,      ///< memory of the host or the backend was not to be had
  internal_error = -8,     ///< a call-back threw, or a defect of the library
  device_error = -9,       ///< the device or its driver refused a call; the detail is its own words
};

/// "out_of_pages", "invalid_argument", … Never null.
const char* status_name(StatusCode code) noexcept;

/// Why an argument was refused. Built only on the error path.
struct ErrorDetail {
  std::string argument;  ///< which argument, e.g. "CacheShape::kv_heads"
  std::string value;     ///< what it was
  std::string allowed;   ///< what is allowed
};

/// A status code with, for errors, the reason. Retryable statuses carry no detail and never
/// allocate.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a code is a status
  Status(StatusCode code) noexcept : code_(code) {}

  /// An error that names the argument, its value and what is allowed.
  static Status error(StatusCode code, std::string_view argument, std::string_view value,
                      std::string_view allowed);
  /// invalid_argument with an integral or floating value.
  static Status invalid(std::string_view argument, std::int64_t value, std::string_view allowed);
  static Status invalid(std::string_view argument, double value, std::string_view allowed);
  static Status invalid(std::string_view argument, std::string_view value,
                        std::string_view allowed);

  [[nodiscard]] bool ok() const noexcept { return code_ == StatusCode::ok; }
  [[nodiscard]] bool retryable() const noexcept { return static_cast<std::int32_t>(code_) > 0; }
  [[nodiscard]] StatusCode code() const noexcept { return code_; }
  /// Null unless the status is an error with a detail.
  [[nodiscard]] const ErrorDetail* detail() const noexcept { return detail_.get(); }
  /// "invalid_argument: CacheShape::kv_heads is 3; allowed: a divisor of query_heads (2)".
  [[nodiscard]] std::string message() const;

  friend bool operator==(const Status& a, StatusCode b) noexcept { return a.code_ == b; }

 private:
  StatusCode code_ = StatusCode::ok;
  std::shared_ptr<const ErrorDetail> detail_;
};

/// A value or the status that explains its absence.
template <class T>
class [[nodiscard]] Result {
 public:
  // A value, a status and a code all convert, so that functions return any of them.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) noexcept : status_(std::move(status)) {}
  Result(StatusCode code) noexcept : status_(code) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] StatusCode code() const noexcept { return status_.code(); }

  /// Precondition: ok().
  [[nodiscard]] T& value() & noexcept { return *value_; }
  [[nodiscard]] const T& value() const& noexcept { return *value_; }
  [[nodiscard]] T&& value() && noexcept { return *std::move(value_); }
  [[nodiscard]] T* operator->() noexcept { return &*value_; }
  [[nodiscard]] const T* operator->() const noexcept { return &*value_; }
  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/status.ipp"
#endif
