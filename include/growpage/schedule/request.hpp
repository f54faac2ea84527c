// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "growpage/core/ids.hpp"
#include "growpage/prefix/page_hash.hpp"

namespace growpage {

/// What an engine submits. Everything is copied at submission.
struct RequestSpec {
  std::uint64_t tag = 0;            ///< the engine's own name; in plans, logs, and policy seeds
  std::span<const TokenId> prompt;  ///< at least one token
  std::int64_t max_new_tokens = 0;  ///< ≥ 1; the request finishes there at the latest
  std::int32_t priority = 0;        ///< lower runs earlier (Unix nice); ties by submission order
  ExtraKey key;                     ///< salt, LoRA, modality of the prefix
};

/// Where a request stands.
enum class RequestState : std::int32_t {
  waiting = 0,     ///< not admitted yet, or preempted and to be recomputed
  prefilling = 1,  ///< admitted, prompt (or recomputed text) not yet complete
  decoding = 2,    ///< generates a token a step
  compacting = 3,  ///< out of the batch until its fence is done
  swapping_out = 4,
  swapped = 5,  ///< preempted, state on the host
  swapping_in = 6,
};

}  // namespace growpage
