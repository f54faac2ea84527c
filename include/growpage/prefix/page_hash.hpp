// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "growpage/core/hash128.hpp"
#include "growpage/core/ids.hpp"

namespace growpage {

/// What besides the tokens decides the content of a page. The three live in separate domains: salt
/// "X" and LoRA "X" never share. Empty = absent. Borrowed for the call.
struct ExtraKey {
  std::string_view salt;      ///< tenant or cache salt
  std::string_view lora;      ///< adapter id
  std::string_view modality;  ///< digest of images, audio, … behind placeholder tokens
  /// First position the modality affects: pages wholly before it are shared without it.
  std::int64_t modality_from = 0;
};

/// A point in a hash chain: the digest of everything up to and including a page, and the identity
/// of that prefix in one `PrefixIndex`. Two prefixes with one digest still have two identities, so
/// a crafted collision does not reach another prefix's pages.
struct PrefixLink {
  Hash128 hash;
  std::uint64_t id = 0;
};

/// Where the chains of an extra key begin (salt and LoRA; modality joins at its own page).
[[nodiscard]] PrefixLink prefix_root(const ExtraKey& key) noexcept;
/// The link from which the first page touched by `modality` hangs.
[[nodiscard]] PrefixLink with_modality(const PrefixLink& parent, const Hash128& modality) noexcept;
[[nodiscard]] Hash128 modality_digest(std::string_view modality) noexcept;
/// The chained hash of a full page, H = XXH3-128 with seed 0: H(parent ‖ tokens) for up to 32
/// tokens, H(parent ‖ H(tokens)) for more, which spares a copy and keeps the tokens' part out of
/// the chain. Digests enter as low ‖ high word, tokens as int32, all in native byte order. Stable
/// across processes and platforms of one endianness. Not cryptographic: a match is confirmed by
/// comparing tokens.
[[nodiscard]] Hash128 hash_page(const Hash128& parent, std::span<const TokenId> tokens) noexcept;

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/page_hash.ipp"
#endif
