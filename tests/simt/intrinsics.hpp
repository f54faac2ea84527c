// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <type_traits>

/// Integer, float and load intrinsics. The fast approximations are the exact functions here:
/// compare a kernel's results with a tolerance.

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= ((x >> bit) & 1U) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<unsigned>((both << (shift & 31U)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<unsigned>(both >> (shift & 31U));
}
/// Each nibble of `selector` picks one byte of b:a; its top bit spreads that byte's sign.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = (static_cast<std::uint64_t>(b) << 32) | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned pick = (selector >> (4 * i)) & 15U;
    auto byte = static_cast<unsigned>(bytes >> (8 * (pick & 7U))) & 255U;
    if ((pick & 8U) != 0) byte = (byte & 128U) != 0 ? 255U : 0U;
    result |= byte << (8 * i);
  }
  return result;
}

inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }

inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0F, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
/// Of π·x, with CUDA's exact reduction.
inline void sincospi(double x, double* sine, double* cosine) {
  const double angle = std::remainder(x, 2.0) * std::numbers::pi;
  *sine = std::sin(angle);
  *cosine = std::cos(angle);
}
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
/// NaN becomes 0, as on the device.
inline float __saturatef(float x) { return x > 0.0F ? (x < 1.0F ? x : 1.0F) : 0.0F; }

// Loads and stores with a cache hint.
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldca(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcv(const T* address) {
  return *static_cast<const volatile T*>(address);
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <class T>
void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <class T>
void __stwb(T* address, std::type_identity_t<T> value) {
  *address = value;
}

// CUDA C++ has min and max in the global namespace, for mixed types too.
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr auto min(A a, B b) {
  using Common = std::common_type_t<A, B>;
  const auto left = static_cast<Common>(a);
  const auto right = static_cast<Common>(b);
  return left < right ? left : right;
}
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr auto max(A a, B b) {
  using Common = std::common_type_t<A, B>;
  const auto left = static_cast<Common>(a);
  const auto right = static_cast<Common>(b);
  return left > right ? left : right;
}
