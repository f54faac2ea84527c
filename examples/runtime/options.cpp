// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <type_traits>

namespace growpage::runtime {
namespace {

const CLI::Range positive(1, 1 << 30);

/// Help shows `value` behind the flag instead of the type and range.
template <class T>
CLI::Option* add(CLI::App& app, const char* flag, T& target, const char* value, const char* what) {
  return app.add_option(flag, target, what)->option_text(value);
}

void add_request_options(CLI::App& app, RunOptions& o) {
  add(app, "--model", o.model, "FOLDER", "Hugging Face folder: config.json and safetensors")
      ->required();
  auto* prompts =
      add(app, "--prompt", o.prompts, "1,2,3", "Token ids of a prompt; may be repeated");
  add(app, "--requests", o.requests, "FILE",
      "Requests as JSONL: {\"prompt\": [1, 2], \"max_new_tokens\": 9, ...}; - for standard input")
      ->excludes(prompts);
  add(app, "--max-new-tokens", o.defaults.max_new_tokens, "N", "Of a request at the most [64]")
      ->default_val(64)
      ->check(positive);
  add(app, "--temperature", o.defaults.sampling.temperature, "X", "0 = greedy [0]");
  add(app, "--top-p", o.defaults.sampling.top_p, "X", "Nucleus sampling [1]");
  add(app, "--seed", o.defaults.sampling.seed, "N", "Of sampling and policy random [0]");
  app.add_flag("--ignore-eos", o.defaults.ignore_eos, "Go on to the last token");
}

void add_policy_options(CLI::App& app, RunOptions& o) {
  add(app, "--policy", o.policy, "NAME",
      "full, fixed, zipage, growpage, random, inverse or shrink [growpage]")
      ->check(
          CLI::IsMember({"full", "fixed", "zipage", "growpage", "random", "inverse", "shrink"}));
  add(app, "--budget", o.budget, "TOKENS", "Of a request under fixed and zipage [16 pages]")
      ->check(positive);
  add(app, "--initial-pages", o.initial_pages, "N", "Pages before a request's first decision [12]")
      ->check(positive);
  add(app, "--sinks", o.retention.sinks, "N", "First tokens that are never evicted [0]")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--protect-prompt", o.retention.protect_prompt, "Evict no token of a prompt");
}

void add_engine_options(CLI::App& app, EngineOptions& o) {
  const std::map<std::string, DType> dtypes{
      {"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};
  const std::map<std::string, Preemption> preemptions{{"swap", Preemption::swap},
                                                      {"recompute", Preemption::recompute}};
  SchedulerOptions& s = o.scheduling;
  add(app, "--pages", o.pages, "N", "Pages of the pool [256]")->check(positive);
  add(app, "--page-size", o.page_size, "TOKENS", "Of a page, a power of two from 16 [256]")
      ->check(positive);
  add(app, "--kv-dtype", o.kv_dtype, "f32|f16|bf16", "Of K and V in the cache [f32]")
      ->transform(CLI::CheckedTransformer(dtypes));
  app.add_flag("!--no-prefix-caching", o.prefix_caching, "Share no prompt pages");
  add(app, "--max-length", o.max_length, "N", "Of a prompt and its output [the model's]")
      ->check(positive);
  add(app, "--max-running", s.max_running, "N", "Requests in the batch [64]")
      ->check(CLI::Range(1, 1 << 16));
  add(app, "--max-batched-tokens", s.max_batched_tokens, "N", "Tokens of a step [512]")
      ->check(positive);
  add(app, "--prefill-chunk", s.max_prefill_chunk, "N", "Tokens of a prompt in a step [all]")
      ->check(positive);
  add(app, "--preemption", s.preemption, "recompute|swap",
      "How preempted requests come back [recompute]")
      ->transform(CLI::CheckedTransformer(preemptions));
  add(app, "--host-pages", o.host_pages, "N", "Pages of swap space [0]")->check(positive);
  app.add_flag("--overcommit", s.overcommit, "Admit without setting initial pages aside");
  add(app, "--threads", o.threads, "N", "[1]")->check(CLI::Range(1, 1024));
  add(app, "--beta-short", o.summary.beta_short, "W",
      "Weight of the old value in the short query summary [0.9]")
      ->check(CLI::Range(0.0, 1.0));
  add(app, "--beta-long", o.summary.beta_long, "W",
      "The same of the long one [1 - 0.256 / page size]")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--library-attention", o.library_attention,
               "Decode through the library's reference attention");
}

void add_output_options(CLI::App& app, RunOptions& o) {
  add(app, "--output", o.output, "FILE", "Generated tokens as JSONL [standard output]");
  add(app, "--logits", o.logits, "FILE",
      "Logits of every output token, f32 [token, vocab], in the order of --output");
  add(app, "--decisions", o.decisions, "FILE", "Decision log as JSONL");
  app.add_flag("--quiet", o.quiet, "No progress and no summary");
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  RunOptions& o = parsed.options;
  CLI::App app{"Runs a Llama or Qwen3 model on token ids, served by growpage."};
  add_request_options(app, o);
  add_policy_options(app, o);
  add_engine_options(app, o.engine);
  add_output_options(app, o);
  try {
    app.parse(argc, argv);
    if (o.prompts.empty() && o.requests.empty()) {
      throw CLI::ValidationError("--prompt", "give a prompt, or --requests");
    }
  } catch (const CLI::ParseError& error) {
    parsed.done = true;
    parsed.code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

Result<AnyPolicy> make_policy(const RunOptions& options) {
  Result<AnyPolicy> policy = AnyPolicy::named(options.policy);
  if (!policy.ok()) return policy;
  const std::int32_t page = options.engine.page_size;
  const std::int32_t budget = options.budget > 0 ? options.budget : 16 * page;
  std::visit(
      [&](auto& p) {
        using P = std::remove_reference_t<decltype(p)>;
        if constexpr (requires { p.capacity.initial_pages; }) {
          p.capacity.initial_pages = options.initial_pages;
        }
        if constexpr (requires { p.retention_options; } && !std::is_same_v<P, ZipagePolicy>) {
          p.retention_options = options.retention;
        }
        if constexpr (std::is_same_v<P, FixedPolicy>) p.budget_tokens = budget;
        if constexpr (std::is_same_v<P, ZipagePolicy>) p.pages = budget / page;
        if constexpr (std::is_same_v<P, RandomPolicy>) p.seed = options.defaults.sampling.seed;
        // The paper's 1024 tokens are four of its pages.
        if constexpr (std::is_same_v<P, ShrinkPolicy>) p.min_tokens = 4 * page;
      },
      policy->variant());
  return policy;
}

}  // namespace growpage::runtime
