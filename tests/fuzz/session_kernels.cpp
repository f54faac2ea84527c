// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace growpage::fuzz {

void Session::update(growpage_cache* c, const growpage_summary_entry* entries, std::size_t count) {
  growpage_tensor k{};
  k.struct_size = sizeof k;
  if (growpage_cache_get_kv(c, &k, nullptr) != GROWPAGE_OK) return;
  growpage_tensor q;
  growpage_tensor_init(&q, sizeof q);
  q.data = floats_.data();
  q.ndim = 4;
  q.shape[0] = k.shape[0];
  q.shape[1] = static_cast<std::int64_t>(count);
  // The number of query heads is not told: one of these fits.
  for (std::int32_t heads = 1; heads <= max_query_heads; ++heads) {
    q.shape[2] = heads;
    q.shape[3] = k.shape[4];
    (void)growpage_cache_update_summaries(c, entries, count, &q, 0,
                                          static_cast<std::int32_t>(k.shape[0]), nullptr);
  }
}

void Session::kernels() {
  growpage_cache* c = cache();
  growpage_demand demand{};
  (void)growpage_cache_measure_demand(c, sequence(), in_.small(0, max_slots), in_.value(0, 100),
                                      &demand, nullptr);
  std::array<std::int64_t, 8> slots{};
  for (auto& slot : slots) slot = in_.value(-1, max_pages * max_page);
  (void)growpage_cache_append_kv(c, in_.small(0, max_layers), slots.data(),
                                 static_cast<std::size_t>(in_.within(0, 8)), floats_.data(),
                                 in_.rarely() ? nullptr : floats_.data(), nullptr);
  std::array<std::int32_t, std::size_t{4} * 3> block{};
  std::array<std::int32_t, 4> lengths{};
  for (auto& page : block) page = in_.small(0, max_pages);
  for (auto& length : lengths) length = in_.small(0, 40);
  std::array<float, std::size_t{4} * max_query_heads * max_dim> out{};
  (void)growpage_cache_attention(
      c, in_.small(0, max_layers), static_cast<std::size_t>(in_.within(0, 4)), block.data(),
      in_.within(0, 3), lengths.data(), floats_.data(), out.data(), nullptr);
}

// The kernels on memory of our own.
void Session::own_kernels() {
  growpage_kernel k;
  growpage_kernel_init(&k, sizeof k);
  k.layers = static_cast<std::int32_t>(in_.within(1, 2));
  k.kv_heads = static_cast<std::int32_t>(in_.within(1, 2));
  k.query_heads = k.kv_heads * static_cast<std::int32_t>(in_.within(1, 2));
  k.head_dim = static_cast<std::int32_t>(in_.within(1, max_dim));
  k.page_size = in_.byte() & 1 ? 16 : max_page;
  k.isa = GROWPAGE_ISA_SCALAR;
  k.slots = in_.small(1, 4 * k.page_size);
  std::array<std::int32_t, 4> table{};
  for (auto& page : table) page = in_.small(0, 5);
  if (in_.byte() < 220) table = {3, 0, 5, 2};
  k.block_table = table.data();
  k.pages = 4;
  growpage_tensor tensor;
  growpage_tensor_init(&tensor, sizeof tensor);
  tensor.data = floats_.data();
  tensor.ndim = 5;
  const std::int64_t shape[] = {k.layers, 6, k.kv_heads, k.page_size, k.head_dim};
  std::copy(std::begin(shape), std::end(shape), tensor.shape);
  k.k = &tensor;
  k.v = nullptr;
  growpage_summary_options summary;
  growpage_summary_options_init(&summary, sizeof summary);
  summary.slots = 2;
  summary.window = in_.byte() & 1 ? 16 : 0;
  growpage_summary_sizes sizes{};
  sizes.struct_size = sizeof sizes;
  std::size_t bytes = 0;
  if (growpage_summary_get_sizes(&k, &summary, &sizes) != GROWPAGE_OK ||
      growpage_workspace_size(&k, 4 * max_page, &bytes) != GROWPAGE_OK) {
    return;
  }
  std::vector<std::int64_t> steps(sizes.steps / 8);
  std::vector<float> state(sizes.summaries / 4);
  std::vector<float> rms(sizes.query_rms / 4);
  std::vector<float> window(sizes.window / 4);
  growpage_summary_state s = {sizeof s, state.data(), rms.data(), window.data(), steps.data()};
  const growpage_summary_entry entry = {in_.small(0, 1), 1};
  growpage_tensor q;
  growpage_tensor_init(&q, sizeof q);
  q.data = floats_.data();
  q.ndim = 4;
  q.shape[0] = k.layers;
  q.shape[1] = 1;
  q.shape[2] = k.query_heads;
  q.shape[3] = k.head_dim;
  (void)growpage_update_summaries(&k, &summary, &s, &entry, 1, &q, 0, k.layers);
  std::unique_ptr<char[]> workspace(new char[bytes]);
  k.workspace = workspace.get();
  k.workspace_bytes = bytes;
  growpage_retention_options retention;
  growpage_retention_options_init(&retention, sizeof retention);
  retention.score = in_.small(0, 1);
  retention.recent = in_.small(0, 16);
  retention.sinks = in_.small(0, 4);
  retention.window = in_.small(1, 16);
  retention.max_pool = in_.byte() & 1 ? 5 : 0;
  retention.global_decay = in_.byte() & 1 ? 0.5F : 0.0F;
  retention.redundancy_weight = in_.byte() & 1 ? 0.5F : 0.0F;
  growpage_query query;
  growpage_query_init(&query, sizeof query);
  query.summary = &summary;
  query.state = &s;
  query.retention = &retention;
  query.summary_slot = in_.small(0, 1);
  query.position = in_.value(0, 200);
  growpage_demand demand{};
  (void)growpage_measure_demand(&k, &query, &demand);
  constexpr std::int64_t stride = 4 * max_page;
  std::vector<float> scores(std::size_t{4} * stride);
  (void)growpage_score(&k, &query, in_.small(0, 40), scores.data(), stride, &demand);
  std::array<std::uint8_t, 4> marks{};
  for (auto& mark : marks) mark = in_.byte() < 200 ? 1 : in_.byte() & 3;
  std::array<std::uint64_t, std::size_t{4} * (stride / 64)> bits{};
  std::array<std::int32_t, 4> kept{};
  if (growpage_select(&k, &retention, scores.data(), stride, marks.data(), in_.small(0, 20),
                      static_cast<std::int32_t>(in_.within(0, 3)) * k.page_size, bits.data(),
                      stride / 64, kept.data()) != GROWPAGE_OK) {
    for (auto& word : bits) word = in_.word();
  }
  growpage_compaction_plan plan = {
      in_.small(0, 1), in_.small(1, 2), {in_.small(0, 3), in_.small(0, 3)}};
  (void)growpage_plan_compaction(marks.data(), kept.data(), 4, in_.small(1, 2), in_.small(0, 1),
                                 &plan);
  (void)growpage_compact(&k, marks.data(), &plan, bits.data(), stride / 64,
                         in_.byte() & 1 ? scores.data() : nullptr, stride);
}

}  // namespace growpage::fuzz
