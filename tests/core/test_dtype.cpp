// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "growpage/core/dtype.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

/// Nearest value (ties to even) of a binary format with `mantissa` explicit bits and the given
/// smallest normal and largest exponents, by scaling to integers: shares nothing with the library.
double nearest(double x, int mantissa, int min_exponent, int max_exponent) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), min_exponent);
  const double ulp = std::ldexp(1.0, exponent - mantissa);
  const double rounded = std::nearbyint(x / ulp) * ulp;
  const double overflow = std::ldexp(2.0 - std::ldexp(1.0, -mantissa - 1), max_exponent);
  if (std::abs(x) >= overflow) return std::copysign(std::numeric_limits<double>::infinity(), x);
  return rounded;
}

double nearest_half(float f) { return nearest(f, 10, -14, 15); }
double nearest_bfloat(float f) { return nearest(f, 7, -126, 127); }

bool same(float got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  return static_cast<double>(got) == want && std::signbit(got) == std::signbit(want);
}

/// The value of a pattern by the definition of IEEE 754 interchange formats.
double decode(std::uint32_t bits, int mantissa_bits, int exponent_bits) {
  const std::uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const std::uint32_t exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1u << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << mantissa_bits),
                           static_cast<int>(exponent) - bias - mantissa_bits);
}

TEST_CASE("dtype: every 16-bit pattern decodes to its value and back to itself") {
  std::int64_t wrong = 0;
  for (std::uint32_t b = 0; b < 65536; ++b) {
    const Float16 half{static_cast<std::uint16_t>(b)};
    wrong += same(half.to_float(), decode(b, 10, 5)) ? 0 : 1;
    const std::uint16_t half_back = Float16::from_float(half.to_float()).bits;
    const BFloat16 bfloat{static_cast<std::uint16_t>(b)};
    wrong += same(bfloat.to_float(), decode(b, 7, 8)) ? 0 : 1;
    const std::uint16_t bfloat_back = BFloat16::from_float(bfloat.to_float()).bits;
    // A NaN may change its payload, not its being one.
    if (std::isnan(half.to_float())) {
      wrong += std::isnan(Float16{half_back}.to_float()) ? 0 : 1;
    } else {
      wrong += half_back == b ? 0 : 1;
    }
    if (std::isnan(bfloat.to_float())) {
      wrong += std::isnan(BFloat16{bfloat_back}.to_float()) ? 0 : 1;
      wrong += (bfloat_back & 0x40u) != 0 ? 0 : 1;  // quiet
    } else {
      wrong += bfloat_back == b ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: floats round to nearest even") {
#ifdef GROWPAGE_NIGHTLY
  constexpr std::uint64_t step = 1;  // all 2^32 of them
#else
  constexpr std::uint64_t step = 1021;  // prime: every exponent, all kinds of mantissas
#endif
  std::int64_t wrong = 0;
  for (std::uint64_t u = 0; u < (std::uint64_t{1} << 32); u += step) {
    const float f = std::bit_cast<float>(static_cast<std::uint32_t>(u));
    wrong += same(Float16::from_float(f).to_float(), nearest_half(f)) ? 0 : 1;
    wrong += same(BFloat16::from_float(f).to_float(), nearest_bfloat(f)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: exact midpoints and their neighbours") {
  std::int64_t wrong = 0;
  for (std::uint32_t b = 0; b < 0x7c00; ++b) {  // every finite half and the one above it
    const float low = Float16{static_cast<std::uint16_t>(b)}.to_float();
    const float high =
        b == 0x7bff ? 65536.0F : Float16{static_cast<std::uint16_t>(b + 1)}.to_float();
    const float middle = low + (high - low) / 2;  // exact: one more bit fits a float
    const float inf = std::numeric_limits<float>::infinity();
    for (const float f : {std::nextafter(middle, -inf), middle, std::nextafter(middle, inf)}) {
      const std::uint32_t want = f < middle ? b : f > middle ? b + 1 : b + (b & 1u);
      wrong += Float16::from_float(f).bits == want ? 0 : 1;
      wrong += Float16::from_float(-f).bits == (want | 0x8000u) ? 0 : 1;
    }
  }
  for (std::uint32_t b = 0; b < 0x7f80; ++b) {
    const std::uint32_t middle = (b << 16) | 0x8000u;
    for (const std::uint32_t u : {middle - 1, middle, middle + 1}) {
      const std::uint32_t want = u < middle ? b : u > middle ? b + 1 : b + (b & 1u);
      wrong += BFloat16::from_float(std::bit_cast<float>(u)).bits == want ? 0 : 1;
      wrong += BFloat16::from_float(std::bit_cast<float>(u | 0x80000000u)).bits == (want | 0x8000u)
                   ? 0
                   : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: conversions are constant expressions") {
  static_assert(Float16::from_float(1.0F).bits == 0x3c00);
  static_assert(Float16{0xc000}.to_float() == -2.0F);
  static_assert(Float16::from_float(65519.0F).bits == 0x7bff);
  static_assert(Float16::from_float(65520.0F).bits == 0x7c00);
  static_assert(Float16::from_float(0x1p-24F).bits == 1);
  static_assert(Float16::from_float(0x1p-25F).bits == 0);
  static_assert(BFloat16::from_float(1.0F).bits == 0x3f80);
  static_assert(BFloat16::from_float(std::numeric_limits<float>::max()).bits == 0x7f80);
  static_assert(dtype_bytes(DType::f32) == 4);
  static_assert(dtype_bytes(DType::f16) == 2);
  static_assert(dtype_bytes(DType::bf16) == 2);
  CHECK(std::string(dtype_name(DType::f32)) == "f32");
  CHECK(std::string(dtype_name(DType::f16)) == "f16");
  CHECK(std::string(dtype_name(DType::bf16)) == "bf16");
}

TEST_CASE("dtype: elements are stored and loaded by index") {
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(t));
    alignas(4) unsigned char memory[16] = {};
    store_element(memory, t, 1, 1.5F);
    store_element(memory, t, 3, -0.25F);
    CHECK(load_element(memory, t, 0) == 0.0F);
    CHECK(load_element(memory, t, 1) == 1.5F);
    CHECK(load_element(memory, t, 2) == 0.0F);
    CHECK(load_element(memory, t, 3) == -0.25F);
  }
}

}  // namespace
}  // namespace growpage
