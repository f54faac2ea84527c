// SPDX-License-Identifier: Apache-2.0
#include "support/floors.hpp"

#include <cstring>
#include <numeric>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// A floor has to be as low as this machine allows: the widest vectors, chosen at run time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define GROWPAGE_BENCH_WIDEST [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define GROWPAGE_BENCH_WIDEST
#endif

namespace growpage::bench::loops {

GROWPAGE_BENCH_WIDEST std::uint64_t read(const char* from, std::int64_t bytes) {
  std::uint64_t sum[32] = {};
  for (std::int64_t at = 0; at < bytes; at += sizeof sum) {
    std::uint64_t block[32];
    std::memcpy(block, from + at, sizeof block);
    for (int i = 0; i < 32; ++i) sum[i] ^= block[i];
  }
  return std::accumulate(sum, sum + 32, std::uint64_t{0});
}

void copy_past_cache(char* to, const char* from, std::int64_t bytes) {
#if defined(__SSE2__)
  auto* target = reinterpret_cast<__m128i*>(to);
  const auto* source = reinterpret_cast<const __m128i*>(from);
  for (std::int64_t i = 0; i < bytes / 16; ++i) _mm_stream_si128(target + i, source[i]);
  _mm_sfence();
#else
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}

/// As a summary update does: every float is read, decayed and written back.
GROWPAGE_BENCH_WIDEST void rewrite(char* data, std::int64_t bytes) {
  auto* x = reinterpret_cast<float*>(data);
  for (std::int64_t i = 0; i < bytes / 4; ++i) x[i] = 0.999F * x[i] + 0.001F;
}

}  // namespace growpage::bench::loops
