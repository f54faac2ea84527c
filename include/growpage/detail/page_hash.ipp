// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstring>

#include "growpage/core/config.hpp"
#include "growpage/prefix/page_hash.hpp"

namespace growpage {

namespace detail {

// Each domain hashes under its own seed, so equal bytes in two domains give unrelated digests.
enum class HashDomain : std::uint64_t { tokens = 0, salt, lora, modality, root, join, join_id };

inline Hash128 xxh3(HashDomain domain, const void* data, std::size_t bytes) noexcept {
  const XXH128_hash_t h = XXH3_128bits_withSeed(data, bytes, static_cast<std::uint64_t>(domain));
  return {h.low64, h.high64};
}

inline Hash128 xxh3(HashDomain domain, std::string_view text) noexcept {
  return xxh3(domain, text.data(), text.size());
}

/// Counter ids never have the top bit (PrefixIndex), derived ones always do.
inline std::uint64_t derived_id(const Hash128& hash) noexcept {
  return hash.low | (std::uint64_t{1} << 63);
}

}  // namespace detail

GROWPAGE_INLINE PrefixLink prefix_root(const ExtraKey& key) noexcept {
  using detail::HashDomain;
  const std::uint64_t lengths[2] = {key.salt.size(), key.lora.size()};
  const Hash128 parts[3] = {{lengths[0], lengths[1]},
                            detail::xxh3(HashDomain::salt, key.salt),
                            detail::xxh3(HashDomain::lora, key.lora)};
  const Hash128 hash = detail::xxh3(HashDomain::root, parts, sizeof parts);
  return {hash, detail::derived_id(hash)};
}

GROWPAGE_INLINE Hash128 modality_digest(std::string_view modality) noexcept {
  return detail::xxh3(detail::HashDomain::modality, modality);
}

GROWPAGE_INLINE PrefixLink with_modality(const PrefixLink& parent,
                                         const Hash128& modality) noexcept {
  using detail::HashDomain;
  const Hash128 parts[2] = {parent.hash, modality};
  const Hash128 identity[2] = {{parent.id, 0}, modality};
  return {detail::xxh3(HashDomain::join, parts, sizeof parts),
          detail::derived_id(detail::xxh3(HashDomain::join_id, identity, sizeof identity))};
}

GROWPAGE_INLINE Hash128 hash_page(const Hash128& parent, std::span<const TokenId> tokens) noexcept {
  constexpr std::size_t small = 32;
  unsigned char block[sizeof parent + small * sizeof(TokenId)];
  std::memcpy(block, &parent, sizeof parent);
  std::size_t bytes = tokens.size_bytes();
  if (tokens.size() <= small) {
    std::memcpy(block + sizeof parent, tokens.data(), bytes);
  } else {
    const Hash128 digest = detail::xxh3(detail::HashDomain::tokens, tokens.data(), bytes);
    bytes = sizeof digest;
    std::memcpy(block + sizeof parent, &digest, bytes);
  }
  return detail::xxh3(detail::HashDomain::tokens, block, sizeof parent + bytes);
}

}  // namespace growpage
