// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "session.hpp"

namespace growpage::replay {
namespace {

constexpr const char* process_intro = R"(== 1. Scheduling at full scale, without attention ==

The GrowPage paper's mixed workload of reasoning requests (AMC23, AIME24, GSM8K) on a simulated A100
with Qwen3-8B. Scheduler, page pool, prefix cache, growth, compaction and preemption are the real
ones. There are no tensors: demand comes from a stochastic process with the paper's grow ratio.

)";

constexpr const char* process_outro = R"(
What it shows: the less KV a policy lets a request hold (KV tokens), the more requests fit at once
(resident) and the more tokens come out per second. shrink holds least. full never evicts, so it runs
out of pages, preempts and computes again.
What it cannot show: answers. Without attention nothing tells a useful token from a useless one, so
growpage looks like random: both grow at about 3 boundaries in 10. Whether growing when attention
widens keeps better tokens than growing by lot is for a real model to say.

)";

constexpr const char* kernels_intro = R"(== 2. The same policies over real tensors ==

200 of these requests at 1/16 of their length, through a small model's cache. K, V and queries are
made up, with phases in which queries attend to a few keys and phases in which they attend to all.
Every token is written to its page, every decode step updates the query summaries, and at every
boundary the CPU kernels measure demand, rank the tokens and move the kept rows.

)";

constexpr const char* kernels_outro = R"(
What it shows: demand is measured now. growpage grows mostly in diffuse phases, inverse mostly in
concentrated ones. What a policy evicts changes what it measures next, so their shares of growth need
not add up to 100 % as they do, but for fallbacks, above. tokens/s is the speed of the cache's kernels
alone: no model runs.
)";

}  // namespace

int run_demo(const ReplayOptions& given) {
  ReplayOptions process = given;
  process.demo = false;
  ReplayOptions kernels;
  kernels.seed = given.seed;
  kernels.quiet = given.quiet;
  kernels.check_every = given.check_every;
  kernels.signal = SignalKind::kernels;
  kernels.requests = 200;
  fill_defaults(kernels);

  const auto say = [&](const char* text) {
    if (!given.quiet) fmt::print("{}", text);
  };
  say(process_intro);
  const int first = run_session(process);
  say(process_outro);
  say(kernels_intro);
  const int second = run_session(kernels);
  say(kernels_outro);
  return first != exit_good ? first : second;
}

}  // namespace growpage::replay
