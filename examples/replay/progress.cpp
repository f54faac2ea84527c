// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace growpage::replay {

Progress::Progress(std::string label, std::int64_t total, bool enabled)
    : label_(std::move(label)), total_(total), visible_(enabled && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(std::int64_t done) {
  constexpr std::int64_t width = 40;
  if (!visible_ || total_ <= 0) return;
  const std::int64_t tenths = 1000 * done / total_;
  if (tenths == shown_) return;
  shown_ = tenths;
  const auto filled = static_cast<std::size_t>(width * tenths / 1000);
  fmt::print(stderr, "\r{:>10} [{}{}] {:5.1f} %", label_, std::string(filled, '='),
             std::string(width - filled, ' '), static_cast<double>(tenths) / 10);
  std::fflush(stderr);
}

}  // namespace growpage::replay
