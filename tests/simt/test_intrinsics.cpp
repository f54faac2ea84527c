// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "simt/emulation.hpp"
#include "simt/expect.hpp"

namespace {

TEST_CASE("bit intrinsics") {
  CHECK(__popc(0xF0F0U) == 8);
  CHECK(__popcll(0xF000000000000001ULL) == 5);
  CHECK(__clz(1) == 31);
  CHECK(__clz(0) == 32);
  CHECK(__clzll(1) == 63);
  CHECK(__ffs(0) == 0);
  CHECK(__ffs(8) == 4);
  CHECK(__ffsll(1LL << 40) == 41);
  CHECK(__brev(0x1U) == 0x80000000U);
  CHECK(__brev(0x12345678U) == 0x1E6A2C48U);
  CHECK(__umulhi(0x80000000U, 6U) == 3U);
  CHECK(__funnelshift_l(0x80000000U, 0x1U, 1) == 0x3U);
  CHECK(__funnelshift_r(0x80000000U, 0x1U, 1) == 0xC0000000U);
  CHECK(__byte_perm(0x33221100U, 0x77665544U, 0x0246U) == 0x00224466U);
  CHECK(__byte_perm(0x80U, 0U, 0x8980U) == 0xFF00FF80U);
}

TEST_CASE("numbers as bits and back") {
  CHECK(__float_as_uint(1.0F) == 0x3F800000U);
  CHECK(__uint_as_float(0x40490FDBU) == Approx(3.14159265F));
  CHECK(__float_as_int(-0.0F) == std::numeric_limits<int>::min());
  CHECK(__int_as_float(0x7F800000) == std::numeric_limits<float>::infinity());
  CHECK(__longlong_as_double(__double_as_longlong(0.1)) == 0.1);
}

TEST_CASE("rounding and saturation") {
  CHECK(__float2int_rn(2.5F) == 2);
  CHECK(__float2int_rn(-1.6F) == -2);
  CHECK(__float2int_rz(-1.6F) == -1);
  CHECK(__float2int_rd(-1.2F) == -2);
  CHECK(__float2int_ru(1.2F) == 2);
  CHECK(__saturatef(-1.0F) == 0.0F);
  CHECK(__saturatef(0.25F) == 0.25F);
  CHECK(__saturatef(7.0F) == 1.0F);
  CHECK(__saturatef(std::numeric_limits<float>::quiet_NaN()) == 0.0F);
  CHECK(rsqrtf(16.0F) == 0.25F);
  CHECK(min(3, 2.5F) == 2.5F);
  CHECK(max(3U, 7) == 7U);
}

TEST_CASE("hinted loads and stores") {
  float value = 1.5F;
  CHECK(__ldg(&value) == 1.5F);
  CHECK(__ldcs(&value) == 1.5F);
  CHECK(__ldcg(&value) == 1.5F);
  __stcs(&value, 2);
  CHECK(value == 2.0F);
  const uint4 vector{1, 2, 3, 4};
  CHECK(__ldg(&vector).w == 4);
}

TEST_CASE("16-bit floats round to nearest even") {
  CHECK(__half2float(__float2half(1.0F + 0x1p-11F)) == 1.0F);
  CHECK(__half2float(__float2half(1.0F + 0x3p-11F)) == 1.0F + 0x1p-9F);
  CHECK(__half2float(__float2half(65520.0F)) == std::numeric_limits<float>::infinity());
  CHECK(__bfloat162float(__float2bfloat16(1.0F + 0x1p-8F)) == 1.0F);
  CHECK(__bfloat162float(__float2bfloat16(1.0F + 0x3p-8F)) == 1.0F + 0x1p-6F);
  CHECK(__half2float(__float2half(2.0F) + __float2half(0.5F)) == 2.5F);
  // Rounded once: the product alone would already be 1 + 2^-9.
  const __half a = __float2half(1.0F + 0x1p-10F);
  CHECK(__half2float(__hfma(a, a, __float2half(-1.0F - 0x1p-9F))) == 0x1p-20F);
}

}  // namespace
