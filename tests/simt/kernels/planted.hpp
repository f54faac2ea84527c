// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// Mistakes that the emulation has to find. `run(true)` makes the mistake, `run(false)` is the same
/// without it; both return whether the result is right.
struct Planted {
  const char* name;
  bool (*run)(bool planted);
};

std::span<const Planted> planted_races();
std::span<const Planted> planted_bounds();
std::span<const Planted> planted_collectives();
std::span<const Planted> planted_memory();
std::span<const Planted> planted_cub();
