// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  growpage::fuzz::Session(data, size).run();
  return 0;
}
