// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simt/warp.hpp"

namespace simt {

/// One collective under way: who has arrived, with what.
struct Rendezvous {
  WarpOp op;
  unsigned mask;
  unsigned arrived;
  std::uint64_t value[32];
  int argument[32];
  int width[32];

  /// What the lane gets once everybody has arrived.
  std::uint64_t result(unsigned lane) const;

 private:
  std::uint64_t vote() const;
  std::uint64_t matching(unsigned lane) const;
  std::uint64_t reduced() const;
  std::uint64_t shuffled(unsigned lane) const;
};

struct Warp {
  static constexpr unsigned slots = 32;  ///< lanes wait in at most 16 collectives at once

  unsigned alive = 0;  ///< lanes that have not returned
  unsigned open = 0;   ///< slots in use
  unsigned next = 0;   ///< slots are taken in turn: lanes still leave those used last
  Rendezvous slot[slots];

  /// The slot of a collective that waits for this lane, else a free one that it opens.
  unsigned join(const WarpCall& call, unsigned lane);
  bool complete(unsigned index) const {
    return (slot[index].mask & alive & ~slot[index].arrived) == 0;
  }
};

}  // namespace simt
