// SPDX-License-Identifier: Apache-2.0
// Which queries the cache's summaries see.
#include "naive_model.hpp"
#include "paged_memory.hpp"
#include "serving.hpp"

using namespace growpage;           // NOLINT(google-build-using-namespace)
using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;     // NOLINT(google-build-using-namespace)

namespace {

/// Summary `which` (0 = short, 1 = long) of a slot, `[q_head · head_dim]`.
std::vector<float> summary(const Cache& cache, std::int32_t layer, std::int32_t slot,
                           std::int32_t which) {
  const SummaryView& view = cache.summaries();
  const float* at = static_cast<const float*>(view.summaries) + view.index(layer, slot, which, 0);
  return {at, at + view.query_heads * view.head_dim};
}

}  // namespace

TEST_CASE("summaries follow the decodes' queries, after q-norm and before RoPE") {
  const std::string type = GENERATE(as<std::string>{}, "llama", "qwen3");
  const Folder folder("summaries");
  TinyCheckpoint tiny = tiny_checkpoint(type);
  write_checkpoint(folder, tiny, DType::f32);
  const Model model = load(folder);
  EngineOptions options;
  options.page_size = 16;
  options.policy = AnyPolicy(GrowPagePolicy{});
  options.scheduling.max_running = 8;
  const auto engine = open(model, options);
  const auto requests = requests_of_many_lengths(3, 20);
  const Served served = serve(*engine, requests);

  const NaiveModel naive(tiny);
  for (const GenerationRequest& request : requests) {
    std::vector<TokenId> text = request.prompt;
    const std::vector<TokenId>& output = served.tokens.at(request.tag);
    text.insert(text.end(), output.begin(), output.end());
    std::vector<NaiveModel::Vec> queries;
    (void)naive.logits(text, &queries);
    // The last token is never an input; the first decode is that of the first output token.
    NaiveModel::Vec brief, lasting;
    for (std::size_t p = request.prompt.size(); p + 1 < text.size(); ++p) {
      if (brief.empty()) brief = lasting = queries[p];
      for (std::size_t i = 0; i < brief.size(); ++i) {
        brief[i] = 0.9 * brief[i] + 0.1 * queries[p][i];
        lasting[i] = 0.984 * lasting[i] + 0.016 * queries[p][i];  // pages of 16 tokens
      }
    }
    // Slots keep what they held. The request's own is the one with as many updates.
    const SummaryView& view = engine->cache().summaries();
    std::int32_t slot = 0;
    while (view.steps[view.row(1, slot)] != static_cast<std::int64_t>(output.size()) - 1) ++slot;
    const std::vector<float> short_summary = summary(engine->cache(), 1, slot, 0);
    const std::vector<float> long_summary = summary(engine->cache(), 1, slot, 1);
    for (std::size_t i = 0; i < brief.size(); ++i) {
      REQUIRE(double{short_summary[i]} == Approx(brief[i]).margin(1e-4));
      REQUIRE(double{long_summary[i]} == Approx(lasting[i]).margin(1e-4));
    }
  }
}

TEST_CASE("a chunk that ends at a boundary starts the summaries with its last query") {
  PagedKVCacheOptions options;
  options.shape = {1, 2, 1, 16, 0, 16};
  options.pages.pages = 8;
  options.dtype = DType::f32;
  options.summary.slots = 8;
  Result<Cache> cache = Cache::create(options);
  REQUIRE(cache.ok());
  const std::vector<TokenId> tokens(100, 1);
  std::vector<PageCopy> copies;
  const auto sequence = [&](std::int32_t length) {
    const auto admitted = cache->admit({});
    REQUIRE(admitted.ok());
    REQUIRE(cache->reserve(admitted->sequence, length).ok());
    REQUIRE(cache->append(admitted->sequence, length, tokens.data(), copies).ok());
    return admitted->sequence;
  };
  StepPlan plan;
  plan.prefills.resize(2);
  plan.prefills[0].sequence = sequence(20);
  plan.prefills[0].tokens = 20;
  plan.prefills[1].sequence = sequence(16);
  plan.prefills[1].first_slot = 9;
  plan.prefills[1].tokens = 7;
  plan.prefills[1].summary = {3};
  plan.decodes.resize(1);
  plan.decodes[0].sequence = sequence(5);
  plan.decodes[0].kv_length = 5;
  plan.decodes[0].summary = {5};
  plan.decodes[0].summary_first = true;
  PagedMemory memory(*cache, {}, /*library_attention=*/false);
  REQUIRE(memory.begin(plan).ok());
  REQUIRE(memory.positions().size() == 28);
  CHECK(memory.positions()[19] == 19);
  CHECK(memory.positions()[20] == 9);
  CHECK(memory.positions()[27] == 4);

  // Token t's query is all t, in rows with something else behind.
  std::vector<float> q(28 * 40, -1);
  for (std::size_t t = 0; t < 28; ++t) std::fill_n(q.begin() + t * 40, 32, static_cast<float>(t));
  REQUIRE(memory.observe(0, q.data(), 40).ok());
  for (const std::int32_t which : {0, 1}) {
    CHECK(summary(*cache, 0, 3, which) == std::vector<float>(32, 26));
    CHECK(summary(*cache, 0, 5, which) == std::vector<float>(32, 27));
    CHECK(summary(*cache, 0, 4, which) == std::vector<float>(32, 0));
  }
}
