// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/detail/splitmix.hpp"

namespace growpage::bench {

/// `count` tokens of a vocabulary of 150,000.
inline std::vector<TokenId> random_tokens(std::size_t count, std::uint64_t seed = 0) {
  std::vector<TokenId> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>(detail::splitmix64((seed << 40) + i) % 150000);
  }
  return tokens;
}

}  // namespace growpage::bench
