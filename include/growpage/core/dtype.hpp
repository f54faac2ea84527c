// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace growpage {

enum class DType : std::int32_t { f32 = 0, f16 = 1, bf16 = 2 };

[[nodiscard]] constexpr std::size_t dtype_bytes(DType t) noexcept {
  return t == DType::f32 ? 4 : 2;
}

[[nodiscard]] constexpr const char* dtype_name(DType t) noexcept {
  return t == DType::f32 ? "f32" : t == DType::f16 ? "f16" : "bf16";
}

/// bf16 storage. Conversion from float rounds to nearest even; NaN stays NaN (quiet).
struct BFloat16 {
  std::uint16_t bits = 0;

  [[nodiscard]] static constexpr BFloat16 from_float(float f) noexcept {
    std::uint32_t u = std::bit_cast<std::uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
  }
  [[nodiscard]] constexpr float to_float() const noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
};

/// IEEE binary16 storage, written with integer arithmetic so that it is constexpr and identical on
/// every compiler. Conversion from float rounds to nearest even, overflows to infinity.
struct Float16 {
  std::uint16_t bits = 0;

  [[nodiscard]] static constexpr Float16 from_float(float f) noexcept {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(f);
    const std::uint32_t sign = (u >> 16) & 0x8000u;
    const std::uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
    if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
    if (magnitude < 0x38800000u) {  // below 2^-14: subnormal or zero
      if (magnitude < 0x33000000u) return {static_cast<std::uint16_t>(sign)};
      const std::uint32_t shift = 126u - (magnitude >> 23);
      const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
      const std::uint32_t half = 1u << (shift - 1);
      std::uint32_t value = mantissa >> shift;
      const std::uint32_t rest = mantissa & ((1u << shift) - 1);
      if (rest > half || (rest == half && (value & 1u) != 0)) ++value;
      return {static_cast<std::uint16_t>(sign | value)};
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
  }
  [[nodiscard]] constexpr float to_float() const noexcept {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0)
      return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
};

static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);

/// The element at index `i` of an array of dtype `t`, as float.
[[nodiscard]] inline float load_element(const void* data, DType t, std::int64_t i) noexcept {
  switch (t) {
    case DType::f16:
      return static_cast<const Float16*>(data)[i].to_float();
    case DType::bf16:
      return static_cast<const BFloat16*>(data)[i].to_float();
    case DType::f32:
      break;
  }
  return static_cast<const float*>(data)[i];
}

inline void store_element(void* data, DType t, std::int64_t i, float value) noexcept {
  switch (t) {
    case DType::f16:
      static_cast<Float16*>(data)[i] = Float16::from_float(value);
      return;
    case DType::bf16:
      static_cast<BFloat16*>(data)[i] = BFloat16::from_float(value);
      return;
    case DType::f32:
      static_cast<float*>(data)[i] = value;
      return;
  }
}

}  // namespace growpage
