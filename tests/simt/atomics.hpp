// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "simt/bits.hpp"

/// Device atomics. Relaxed, as CUDA's are: they order no other memory, and the race detector knows.

namespace simt {

/// Read, change, write as one step, for what the compiler has no instruction for.
template <class T, class Change>
T read_modify_write(T* address, Change change) {
  using Word = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  static_assert(sizeof(T) == sizeof(Word));
  auto* word = reinterpret_cast<Word*>(address);
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED);
  Word after;
  do {
    after = static_cast<Word>(to_bits(static_cast<T>(change(from_bits<T>(before)))));
  } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return from_bits<T>(before);
}

template <class T>
concept AtomicFloat =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, __half> ||
    std::same_as<T, __half2> || std::same_as<T, __nv_bfloat16> || std::same_as<T, __nv_bfloat162>;

/// The width of an atomic and nothing more, so that a literal of another type converts.
template <class T>
using Operand = std::type_identity_t<T>;

}  // namespace simt

template <std::integral T>
T atomicAdd(T* address, simt::Operand<T> value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <simt::AtomicFloat T>
T atomicAdd(T* address, simt::Operand<T> value) {
  return simt::read_modify_write(address, [value](T old) { return old + value; });
}
template <std::integral T>
T atomicSub(T* address, simt::Operand<T> value) {
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <std::integral T>
T atomicOr(T* address, simt::Operand<T> value) {
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <std::integral T>
T atomicAnd(T* address, simt::Operand<T> value) {
  return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <std::integral T>
T atomicXor(T* address, simt::Operand<T> value) {
  return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}
template <std::integral T>
T atomicMax(T* address, simt::Operand<T> value) {
  return simt::read_modify_write(address, [value](T old) { return old > value ? old : value; });
}
template <std::integral T>
T atomicMin(T* address, simt::Operand<T> value) {
  return simt::read_modify_write(address, [value](T old) { return old < value ? old : value; });
}
template <class T>
T atomicExch(T* address, simt::Operand<T> value) {
  return simt::read_modify_write(address, [value](T) { return value; });
}
template <class T>
T atomicCAS(T* address, simt::Operand<T> compare, simt::Operand<T> value) {
  return simt::read_modify_write(address,
                                 [compare, value](T old) { return old == compare ? value : old; });
}
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return simt::read_modify_write(address,
                                 [limit](unsigned old) { return old >= limit ? 0U : old + 1; });
}
