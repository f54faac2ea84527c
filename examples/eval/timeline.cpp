// SPDX-License-Identifier: Apache-2.0
// Part `timeline`: pages and Δ of the longest requests under growpage, and how attention
// concentrates while texts grow: the share of a step's attention that falls on the 5, 10 and 20 %
// of the slots that get most, the mean over layers and query heads, nothing evicted.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "experiment.hpp"
#include "growpage/core/dtype.hpp"
#include "rope.hpp"

namespace growpage::eval {
namespace {

constexpr std::array shares{0.05, 0.10, 0.20};
constexpr std::size_t concentration_texts = 32;
using Shares = std::array<double, shares.size()>;

/// Attention of single steps, from the keys in the cache and the query in the summaries.
class Concentration {
 public:
  Concentration(const runtime::Model& model, std::int64_t positions)
      : rope_(model.config(), positions), q_(static_cast<std::size_t>(model.config().head_dim)) {}

  Result<Shares> measure(const runtime::Cache& cache, const DecodeItem& item) {
    const CacheShape& shape = cache.shape();
    const Result<SequenceView> view = cache.view(item.sequence);
    if (!view.ok()) return view.status();
    Shares sum{};
    for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
      for (std::int32_t head = 0; head < shape.query_heads; ++head) {
        attend(cache, item, view->pages, layer, head);
        add_shares(sum);
      }
    }
    for (double& s : sum) s /= static_cast<double>(shape.layers) * shape.query_heads;
    return sum;
  }

 private:
  void attend(const runtime::Cache& cache, const DecodeItem& item, std::span<const PageId> pages,
              std::int32_t layer, std::int32_t head) {
    const CacheShape& shape = cache.shape();
    const SummaryView& summaries = cache.summaries();
    const float* query = static_cast<const float*>(summaries.summaries) +
                         summaries.index(layer, item.summary.value, 0, head);
    rope_.rotate(query, 1, item.position, q_.data());
    const KvTensor& k = cache.kv().k;
    weights_.clear();
    for (std::int32_t slot = 0; slot < item.kv_length; ++slot) {
      const PageId page = pages[static_cast<std::size_t>(slot / shape.page_size)];
      const void* row = k.row(layer, page, head / shape.group(), slot % shape.page_size);
      double logit = 0;
      for (std::int32_t i = 0; i < shape.head_dim; ++i) {
        logit += double{q_[static_cast<std::size_t>(i)]} * double{load_element(row, k.dtype, i)};
      }
      weights_.push_back(logit / std::sqrt(static_cast<double>(shape.head_dim)));
    }
    const double largest = *std::ranges::max_element(weights_);
    for (double& w : weights_) w = std::exp(w - largest);
  }
  void add_shares(Shares& sum) {
    std::ranges::sort(weights_, std::greater());
    const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto top = std::ceil(shares[i] * static_cast<double>(weights_.size()));
      const auto end = weights_.begin() + static_cast<std::ptrdiff_t>(top);
      sum[i] += std::accumulate(weights_.begin(), end, 0.0) / total;
    }
  }

  runtime::RopeTables rope_;
  std::vector<float> q_;
  std::vector<double> weights_;
};

/// [slots, share of the top 5 %, 10 %, 20 %, texts], at every page end.
Result<Json> concentration_of(const Experiment& experiment, std::span<const Text> texts) {
  std::int64_t positions = 0;
  for (const Text& t : texts) {
    positions = std::max(positions, static_cast<std::int64_t>(t.problem->prompt.size()) + t.tokens);
  }
  Concentration concentration(experiment.runner().model(), positions);
  std::map<std::int32_t, std::vector<Shares>> by_slots;
  const auto measure = [&](runtime::Engine& engine, const StepPlan& plan) -> Status {
    for (const DecodeItem& item : plan.decodes) {
      if (item.kv_length % experiment.options().page_size != 0) continue;
      const Result<Shares> s = concentration.measure(engine.cache(), item);
      if (!s.ok()) return s.status();
      by_slots[item.kv_length].push_back(*s);
    }
    return {};
  };
  Setup setup = make_setup(experiment.options(), "full");
  setup.summary.beta_short = 0;  // the short summary is the step's query
  const Result<RunResult> run = experiment.runner().run(setup, texts, {}, measure);
  if (!run.ok()) return run.status();
  Json rows = Json::array();
  for (const auto& [slots, all] : by_slots) {
    Shares sum{};
    for (const Shares& s : all) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += s[i];
    }
    Json row = {slots};
    for (const double s : sum) row.push_back(s / static_cast<double>(all.size()));
    row.push_back(all.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Result<Json> measure_timeline(const Experiment& experiment) {
  const EvalOptions& options = experiment.options();
  std::vector<Text> texts = forced_texts(experiment.problems());
  std::ranges::stable_sort(texts, std::greater(), &Text::tokens);
  const auto first = [&](std::size_t n) {
    return std::span(texts).first(std::min(n, texts.size()));
  };

  const std::span<const Text> watched = first(static_cast<std::size_t>(options.timelines));
  const Result<RunResult> run = experiment.runner().run(make_setup(options, "growpage"), watched);
  if (!run.ok()) return run.status();
  Json requests = Json::array();
  for (const Text& text : watched) {
    requests.push_back({{"tag", text.problem->tag}, {"points", Json::array()}});
  }
  // Length, pages afterwards, Δ, what was done.
  for (const DecisionRecord& r : run->decisions) {
    requests[r.tag]["points"].push_back({r.length, r.pages_after,
                                         r.measured ? Json(r.delta) : Json(nullptr),
                                         decision_name(r.kind)});
  }
  Result<Json> concentration = concentration_of(experiment, first(concentration_texts));
  if (!concentration.ok()) return concentration.status();
  return Json{{"requests", std::move(requests)}, {"concentration", std::move(*concentration)}};
}

}  // namespace growpage::eval
