// SPDX-License-Identifier: Apache-2.0
// growpage_simt_planted <case>: makes one mistake under many seeds until it shows.
// growpage_simt_planted sound: all cases without their mistake, none of which may be reported.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "simt/kernels/planted.hpp"
#include "simt/settings.hpp"

namespace {

constexpr std::uint64_t seeds = 20;

void use_seed(std::uint64_t seed) {
  simt::Settings settings = simt::settings();
  settings.seed = seed;
  simt::configure(settings);
}

/// 0: the mistake showed.
int find_mistake(const Planted& planted) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    use_seed(seed);
    const bool right = planted.run(true);
    if (cudaGetLastError() != cudaSuccess) return 0;  // the runtime has printed what and where
    if (!right) {
      std::printf("%s: wrong result with seed %d\n", planted.name, static_cast<int>(seed));
      return 0;
    }
  }
  std::printf("%s: not found\n", planted.name);
  return 1;
}

bool sound(const Planted& planted) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    use_seed(seed);
    if (!planted.run(false) || cudaGetLastError() != cudaSuccess) {
      std::printf("%s: false alarm with seed %d\n", planted.name, static_cast<int>(seed));
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: growpage_simt_planted <case>|sound\n", stderr);
    return 2;
  }
  bool all_sound = true;
  for (const auto cases : {planted_races(), planted_bounds(), planted_collectives(),
                           planted_memory(), planted_cub()}) {
    for (const Planted& planted : cases) {
      if (std::strcmp(argv[1], planted.name) == 0) return find_mistake(planted);
      if (std::strcmp(argv[1], "sound") == 0) all_sound = sound(planted) && all_sound;
    }
  }
  if (std::strcmp(argv[1], "sound") == 0) return all_sound ? 0 : 1;
  std::fprintf(stderr, "no case %s\n", argv[1]);
  return 2;
}
