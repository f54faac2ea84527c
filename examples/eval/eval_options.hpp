// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "growpage/cache/paged_kv_cache_options.hpp"
#include "growpage/core/dtype.hpp"
#include "growpage/policy/capacity_policy.hpp"
#include "statistics.hpp"

namespace growpage::eval {

/// Everything the command line of growpage-eval says. Lengths in pages scale with the page size.
struct EvalOptions {
  std::string model;     ///< folder
  std::string problems;  ///< JSONL; empty = problems.jsonl of the model's folder
  std::vector<std::string> parts{"all"};
  std::string output;   ///< JSON file of all results
  std::string results;  ///< such a file to read instead of running anything
  bool check = false;
  bool quick = false;

  std::int32_t threads = 1;
  std::int64_t limit = 0;   ///< problems taken, from the first; 0 = all
  std::int32_t copies = 3;  ///< generations of a problem, each with draws of its own
  std::uint64_t seed = 1;
  double temperature = 0.6;
  double top_p = 1;
  BootstrapOptions bootstrap;

  // The engine.
  std::int32_t page_size = 16;
  std::int64_t pages = 0;  ///< of the pool; 0 = enough for all that runs
  std::int32_t max_running = 64;
  DType kv_dtype = DType::f32;
  bool overcommit = false;

  // The policies.
  /// Rows of `table`, growpage among them.
  std::vector<std::string> policies{"full",   "fixed",   "zipage", "growpage",
                                    "random", "inverse", "shrink"};
  std::int32_t initial_pages = CapacityLimits{}.initial_pages;
  std::vector<std::int32_t> budgets{8, 12, 16, 20};  ///< pages, of fixed and zipage
  double threshold = 0;                              ///< τ of growpage
  double random_compact = 0.7;
  std::int32_t shrink_min_pages = 2;
  SummaryOptions summary;
  DemandOptions demand;
  RetentionOptions retention;  ///< of all but zipage, which has its own

  // The parts.
  std::int64_t variant_texts = 128;  ///< on which `signal` tries other options; 0 = none
  std::int64_t boundaries = 1500;    ///< sampled by `advantage`
  std::int32_t bins = 5;
  std::vector<std::int32_t> sufficient{3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};  ///< pages
  std::int32_t ablation_copies = 1;
  std::int32_t timelines = 4;  ///< requests drawn over time

  [[nodiscard]] bool wants(const char* part) const;
  [[nodiscard]] bool lists(std::string_view policy) const;
};

/// Reads the command line. `done`: the program is to end with `code` (help, or bad flags: 2).
struct ParsedOptions {
  EvalOptions options;
  bool done = false;
  int code = 0;
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace growpage::eval
