// SPDX-License-Identifier: Apache-2.0
#include "variant.hpp"

#include <fmt/format.h>

#include <utility>

#include "growpage/policy/zipage.hpp"

namespace growpage::eval {
namespace {

class List {
 public:
  explicit List(const EvalOptions& base) : base_(base) {}

  template <class F>
  Variant& add(const char* group, std::string name, F&& change) {
    Variant& variant = list_.emplace_back(Variant{group, std::move(name), base_});
    change(variant.options);
    return variant;
  }
  [[nodiscard]] std::vector<Variant> take() { return std::move(list_); }

 private:
  const EvalOptions& base_;
  std::vector<Variant> list_;
};

}  // namespace

std::vector<Variant> demand_variants(const EvalOptions& base) {
  List list(base);
  list.add("default", "default", [](EvalOptions&) {});
  struct Betas {
    float s, l;
  };
  // The paper's five; then long summaries of its horizon in pages, which are smaller here.
  for (const Betas b :
       {Betas{0, 0.999F}, Betas{0, 0.99F}, Betas{0.9F, 0.99F}, Betas{0.99F, 0.999F},
        Betas{0.9F, 0.999F}, Betas{0.9F, 0.984F}, Betas{0.5F, 0.984F}, Betas{0.5F, 0.94F}}) {
    list.add("betas", fmt::format("{:g} / {:g}", b.s, b.l), [b](EvalOptions& o) {
      o.summary.beta_short = b.s;
      o.summary.beta_long = b.l;
    });
  }
  list.add("metric", "entropy", [](EvalOptions& o) { o.demand.metric = DemandMetric::entropy; });
  list.add("metric", "per query head",
           [](EvalOptions& o) { o.demand.group = GroupReduction::per_query_head; });
  for (const float p : {0.9F, 0.95F}) {
    list.add("metric", fmt::format("p = {:g}", p), [p](EvalOptions& o) { o.demand.p = p; });
  }
  return list.take();
}

std::vector<Variant> retention_variants(const EvalOptions& base) {
  List list(base);
  for (const int local : {16, 32, 64, 128}) {
    list.add("k_loc", fmt::format("k_loc = {} per 256", local),
             [local](EvalOptions& o) { o.retention.local_per_256 = local; });
  }
  for (const double threshold : {-0.06, -0.04, -0.02, -0.005, 0.005, 0.02}) {
    list.add("threshold", fmt::format("tau = {:g}", threshold),
             [threshold](EvalOptions& o) { o.threshold = threshold; });
  }
  list.add("compaction", "in order",
           [](EvalOptions& o) { o.retention.strategy = CompactionStrategy::in_order; });
  list.add("compaction", "4 sinks", [](EvalOptions& o) { o.retention.sinks = 4; });
  list.add("compaction", "prompt protected",
           [](EvalOptions& o) { o.retention.protect_prompt = true; });
  for (const float decay : {0.8F, 0.95F}) {
    list.add("compaction", fmt::format("global score, decay {:g}", decay),
             [decay](EvalOptions& o) { o.retention.global_decay = decay; });
  }
  list.add("compaction", "scored by the last queries, as Zipage does",
           [](EvalOptions& o) { o.retention = ZipagePolicy::defaults(); });
  // These two differ only where a prompt fills a page.
  for (const auto& [name, shared] : {std::pair("shared prompts, keep", SharedPages::keep),
                                     std::pair("shared prompts, copy", SharedPages::copy)}) {
    list.add("shared", name, [s = shared](EvalOptions& o) { o.retention.shared = s; })
        .shared_prompts = true;
  }
  for (const int pages : {2, 4, 8, 12}) {
    list.add("initial", fmt::format("{} initial pages", pages),
             [pages](EvalOptions& o) { o.initial_pages = pages; });
  }
  return list.take();
}

}  // namespace growpage::eval
