// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "growpage/core/cache_shape.hpp"
#include "growpage/policy/capacity_policy.hpp"
#include "growpage/schedule/scheduler_options.hpp"
#include "step_clock.hpp"
#include "trace.hpp"

namespace growpage::replay {

enum class SignalKind : std::int32_t { process, kernels };
enum class Workload : std::int32_t { mixed, amc23 };

/// Everything the command line says.
struct ReplayOptions {
  std::string trace;  ///< a file; empty = the generated workload
  TraceFormat format = TraceFormat::guess;
  Workload workload = Workload::mixed;
  std::int64_t requests = 0;  ///< 0 = all
  double scale = 0;           ///< multiplies every length; 0 = default of the signal
  double rate_scale = 1;      ///< speeds arrivals up
  std::uint64_t seed = 1;

  std::vector<std::string> policies;
  std::int32_t budget = 0;  ///< tokens, for fixed and zipage; 0 = 16 pages (4096 at page 256)
  double threshold = 0;     ///< τ of growpage
  std::int32_t initial_pages = CapacityLimits{}.initial_pages;

  SignalKind signal = SignalKind::process;
  CacheShape shape{.page_size = 0};  ///< 0 fields are filled in by `fill_defaults`
  std::int64_t pages = 0;            ///< of the pool; 0 = what fits into the memory
  std::int64_t host_pages = 0;       ///< of swap space; 0 = as many as the pool has
  StepCosts costs;
  std::int32_t max_running = 512;
  std::int64_t max_batched_tokens = 8192;
  Preemption preemption = Preemption::recompute;
  bool overcommit = false;  ///< see SchedulerOptions
  std::int64_t fence_delay = 1;
  std::int64_t check_every = 0;

  std::string json;       ///< a file, "-" = standard output; empty = none
  std::string decisions;  ///< likewise a file; with several policies one each
  std::string timeline;
  bool demo = false;
  bool quiet = false;
};

/// The names of all policies, in the order of the tables.
[[nodiscard]] const std::vector<std::string>& all_policies();

/// Fills in what depends on the signal: the model's shape (Qwen3-8B with pages of 256 tokens, or a
/// small model with pages of 32) and the pool.
void fill_defaults(ReplayOptions& options);

/// Reads the command line. `done`: the program is to end with `code` (help, or bad flags: 2).
struct ParsedOptions {
  ReplayOptions options;
  bool done = false;
  int code = 0;
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace growpage::replay
