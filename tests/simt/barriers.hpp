// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simt/thread.hpp"

namespace simt {

enum class BarrierKind : std::uint8_t { plain, count, any, all };

/// Waits for every thread of the block that has not returned; returns what `kind` makes of the
/// predicates. Threads that wait at different places, or with another kind, fail the kernel.
int block_barrier(BarrierKind kind, bool predicate, Location at);

}  // namespace simt

inline void __syncthreads(simt::Location at = simt::Location::current()) {
  simt::block_barrier(simt::BarrierKind::plain, false, at);
}
inline int __syncthreads_count(int predicate, simt::Location at = simt::Location::current()) {
  return simt::block_barrier(simt::BarrierKind::count, predicate != 0, at);
}
inline int __syncthreads_or(int predicate, simt::Location at = simt::Location::current()) {
  return simt::block_barrier(simt::BarrierKind::any, predicate != 0, at);
}
inline int __syncthreads_and(int predicate, simt::Location at = simt::Location::current()) {
  return simt::block_barrier(simt::BarrierKind::all, predicate != 0, at);
}
