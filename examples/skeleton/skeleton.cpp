// SPDX-License-Identifier: Apache-2.0
// A policy and a backend to copy. See CONTRIBUTING.md: a policy goes to include/growpage/policy/, a
// backend to include/growpage/backend/; each ends with a static_assert of its concept and is added
// to its conformance suite.
#include <fmt/core.h>

#include <vector>

#include "growpage/growpage.hpp"

namespace growpage {

/// A policy: a copyable value with seven members. This one grows while memory is plentiful, and
/// holds once more than `high` of the pool is in use.
struct PressurePolicy {
  double high = 0.5;  ///< 0 … 1
  CapacityLimits capacity{2, 0};
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "pressure"; }
  [[nodiscard]] bool needs_demand() const noexcept { return false; }  // Δ is not measured for it
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return capacity; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    if (!(high >= 0 && high <= 1)) return Status::invalid("PressurePolicy::high", high, "0 to 1");
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    return context.pressure > high ? Decision::compact : Decision::grow;
  }
};

static_assert(CapacityPolicy<PressurePolicy>);

/// A backend: every kernel of backend/contract.hpp. A real one replaces the bodies; this one wraps
/// the CPU backend and counts launches, which is also how to trace one.
class CountingBackend {
 public:
  [[nodiscard]] void* allocate(std::int64_t bytes) { return cpu_.allocate(bytes); }
  void deallocate(void* memory, std::int64_t bytes) noexcept { cpu_.deallocate(memory, bytes); }
  [[nodiscard]] void* allocate_host(std::int64_t bytes) { return cpu_.allocate_host(bytes); }
  void deallocate_host(void* memory, std::int64_t bytes) noexcept {
    cpu_.deallocate_host(memory, bytes);
  }
  [[nodiscard]] bool host_accessible() const noexcept { return cpu_.host_accessible(); }
  [[nodiscard]] Status take_status() noexcept { return cpu_.take_status(); }
  [[nodiscard]] std::int64_t workspace_bytes(const CacheShape& shape, std::int32_t slots) const {
    return cpu_.workspace_bytes(shape, slots);
  }
  void summary_update(const SummaryUpdate& update, StreamView stream) {
    ++launches;
    cpu_.summary_update(update, stream);
  }
  void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream) {
    ++launches;
    cpu_.boundary_pass(pass, workspace, stream);
  }
  void select(const Selection& selection, void* workspace, StreamView stream) {
    ++launches;
    cpu_.select(selection, workspace, stream);
  }
  void compact(const CompactionMove& move, void* workspace, StreamView stream) {
    ++launches;
    cpu_.compact(move, workspace, stream);
  }
  void copy_pages(const CacheShape& shape, const KvView& kv, std::span<const PageCopy> copies,
                  StreamView stream) {
    ++launches;
    cpu_.copy_pages(shape, kv, copies, stream);
  }
  void pages_to_host(const CacheShape& shape, const KvView& kv,
                     std::span<const PageTransfer> transfers, void* host, StreamView stream) {
    ++launches;
    cpu_.pages_to_host(shape, kv, transfers, host, stream);
  }
  void pages_from_host(const CacheShape& shape, const KvView& kv,
                       std::span<const PageTransfer> transfers, const void* host,
                       StreamView stream) {
    ++launches;
    cpu_.pages_from_host(shape, kv, transfers, host, stream);
  }
  void copy_to_host(void* host, const void* device, std::int64_t bytes, StreamView stream) {
    cpu_.copy_to_host(host, device, bytes, stream);
  }
  void copy_from_host(void* device, const void* host, std::int64_t bytes, StreamView stream) {
    cpu_.copy_from_host(device, host, bytes, stream);
  }
  void append_kv(const AppendKv& append, StreamView stream) {
    ++launches;
    cpu_.append_kv(append, stream);
  }
  void paged_attention(const PagedAttention& attention, void* workspace, StreamView stream) {
    ++launches;
    cpu_.paged_attention(attention, workspace, stream);
  }
  void synchronize(StreamView stream) { cpu_.synchronize(stream); }
  [[nodiscard]] const char* name() const noexcept { return "counting"; }

  std::int64_t launches = 0;

 private:
  CpuBackend cpu_;
};

static_assert(KvBackend<CountingBackend>);

}  // namespace growpage

int main() {
  using namespace growpage;  // NOLINT(google-build-using-namespace)
  PressurePolicy policy;
  PagedKVCacheOptions config;
  config.shape = {2, 4, 2, 16, 0, 16};
  config.pages.pages = 6;
  config.dtype = DType::f32;
  config.summary.slots = 2;
  config.retention = policy.retention();
  auto cache = PagedKVCache<CountingBackend>::create(config);
  if (!cache.ok()) return 1;

  SchedulerOptions options;
  options.summary_slots = options.max_running = 2;
  auto scheduler =
      Scheduler<PressurePolicy, PagedKVCache<CountingBackend>>::create(*cache, policy, options);
  if (!scheduler.ok()) return 1;
  const std::vector<TokenId> prompt(10, 1);
  RequestSpec spec;
  spec.prompt = prompt;
  spec.max_new_tokens = 200;
  if (!scheduler->submit(spec).ok()) return 1;

  const std::vector<float> ones(128, 1.0F);
  std::vector<FenceId> fences;
  std::vector<MeasuredDemand> demand;
  std::vector<SampledToken> tokens;
  while (!scheduler->idle()) {
    const auto plan = scheduler->schedule();
    if (!plan.ok()) return 1;
    fences.clear();
    demand.clear();
    tokens.clear();
    if (!run_before_forward(*cache, **plan, fences).ok()) return 1;
    for (const PrefillChunk& chunk : (*plan)->prefills) {
      if (chunk.last) tokens.push_back({chunk.request, 1});
    }
    for (const DecodeItem& item : (*plan)->decodes) {
      const SummaryEntry entry{item.summary.value, item.summary_first ? 1 : 0};
      if (!cache->update_summaries({&entry, 1}, {ones.data()}, 0, 2).ok()) return 1;
      tokens.push_back({item.request, 1});
    }
    if (!run_after_forward(*cache, **plan, demand).ok()) return 1;
    if (!scheduler->complete({tokens, demand, fences, {}}).ok()) return 1;
  }
  const Counters& c = scheduler->counters();
  fmt::print("{} grow, {} compact, {} kernel launches\n", c.grow, c.compact,
             cache->backend().launches);
  return c.compact > 0 && cache->backend().launches > 0 ? 0 : 1;
}
