// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace growpage::replay {

/// A progress bar on standard error, drawn only when that is a terminal.
class Progress {
 public:
  /// `enabled` = false draws nothing anywhere.
  Progress(std::string label, std::int64_t total, bool enabled);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void update(std::int64_t done);

 private:
  std::string label_;
  std::int64_t total_;
  std::int64_t shown_ = -1;  // tenths of a percent on the screen
  bool visible_;
};

}  // namespace growpage::replay
