// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage::runtime {

/// Everything the command line of growpage-run says.
struct RunOptions {
  std::string model;                 ///< folder
  std::vector<std::string> prompts;  ///< token ids, "1,2,3"
  std::string requests;              ///< JSONL file, "-" = standard input
  std::string output = "-";          ///< JSONL file, "-" = standard output
  std::string logits;                ///< file for the logits of every output token
  std::string decisions;             ///< JSONL file for the decision log

  std::string policy = "growpage";
  std::int32_t budget = 0;  ///< tokens, for fixed and zipage; 0 = 16 pages
  std::int32_t initial_pages = CapacityLimits{}.initial_pages;
  RetentionOptions retention;  ///< of all but zipage, which has its own
  GenerationRequest defaults;  ///< of requests that do not say themselves
  EngineOptions engine;
  bool quiet = false;
};

/// Reads the command line. `done`: the program is to end with `code` (help, or bad flags: 2).
struct ParsedOptions {
  RunOptions options;
  bool done = false;
  int code = 0;
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

/// The policy called `name` with what the options say of it.
[[nodiscard]] Result<AnyPolicy> make_policy(const RunOptions& options);

}  // namespace growpage::runtime
