// SPDX-License-Identifier: Apache-2.0
// Call sequences through the C API: right ones, wrong ones, on handles and ids that are alive, gone
// or never were. Nothing may crash, and the bookkeeping must hold whatever was called. Only memory
// is always as long as it is said to be: that the library cannot check.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "growpage/growpage.h"

namespace {

constexpr std::int32_t max_layers = 2, max_query_heads = 4, max_dim = 8, max_page = 32,
                       max_pages = 12, max_slots = 4, max_sequences = 6, max_batch = 8;
constexpr std::size_t max_text = 96;

/// The fuzzer's bytes as choices; zeros when they are used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool done() const { return at_ == end_; }
  std::uint8_t byte() { return done() ? std::uint8_t{0} : *at_++; }
  std::uint64_t word() {
    std::uint64_t w = 0;
    for (int i = 0; i < 8; ++i) w = w << 8 | byte();
    return w;
  }
  /// Mostly in [low, high]; sometimes just outside, or far.
  std::int64_t value(std::int64_t low, std::int64_t high) {
    const std::uint8_t b = byte();
    if (b < 240) return low + b % (high - low + 1);
    constexpr std::array<std::int64_t, 8> odd = {-1,        0,         1,         INT32_MAX,
                                                 INT32_MIN, INT64_MAX, INT64_MIN, 4096};
    return odd[b & 7];
  }
  /// Always in [low, high].
  std::int64_t within(std::int64_t low, std::int64_t high) {
    return low + byte() % (high - low + 1);
  }
  std::int32_t small(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(value(low, high));
  }
  bool rarely() { return byte() > 240; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

class Session {
 public:
  Session(const std::uint8_t* data, std::size_t size) : in_(data, size) {
    for (std::size_t i = 0; i < floats_.size(); ++i) {
      floats_[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) / 500.0F;
    }
    create_policy();
    create_cache();
    create_scheduler();
  }
  ~Session() {
    for (auto* s : schedulers_) (void)growpage_scheduler_destroy(s);
    for (auto* c : caches_) (void)growpage_cache_destroy(c);
    for (auto* p : policies_) (void)growpage_policy_destroy(p);
    for (auto* x : indices_) (void)growpage_prefix_index_destroy(x);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void run() {
    for (int calls = 0; !in_.done() && calls < 400; ++calls) {
      call();
      for (auto* c : caches_) require(growpage_cache_check_invariants(c));
      for (auto* s : schedulers_) require(growpage_scheduler_check_invariants(s));
    }
  }

 private:
  static void require(growpage_status s) {
    if (s != GROWPAGE_OK && s != GROWPAGE_INVALID_ARGUMENT) std::abort();  // a destroyed handle is
  }

  /// A live handle as a rule; else null, a destroyed one, or nonsense.
  template <class Handle>
  Handle* pick(const std::vector<Handle*>& from) {
    const std::uint8_t b = in_.byte();
    if (b < 245 && !from.empty()) return from[b % from.size()];
    if (b < 250) return nullptr;
    if (b < 253) return reinterpret_cast<Handle*>(std::uintptr_t{b} * 0x9E3779B97F4A7C15U);
    if (!caches_.empty()) return reinterpret_cast<Handle*>(caches_[0]);
    return nullptr;
  }
  std::uint64_t id(const std::vector<std::uint64_t>& from) {
    const std::uint8_t b = in_.byte();
    if (b < 240 && !from.empty())
      return from[from.size() - 1 - b % std::min<std::size_t>(from.size(), 12)];
    return b & 1 ? in_.word() : b;
  }
  growpage_cache* cache() { return pick(caches_); }
  growpage_scheduler* scheduler() { return pick(schedulers_); }
  std::uint64_t sequence() { return id(sequences_); }

  void create_policy() {
    constexpr std::array<const char*, 9> names = {
        "growpage", "full", "fixed", "zipage", "random", "inverse", "shrink", "nobody", nullptr};
    growpage_policy* p = nullptr;
    const std::uint8_t b = in_.byte();
    const growpage_status s = b < 40
                                  ? growpage_policy_create_user(&decide, this, b & 1, nullptr, &p)
                                  : growpage_policy_create(names[b % names.size()], nullptr, &p);
    if (s != GROWPAGE_OK) return;
    (void)growpage_policy_set_int(p, "initial_pages", in_.value(1, 3));
    (void)growpage_policy_set_int(p, "budget_tokens", in_.within(2, 4) * max_page);
    (void)growpage_policy_set_int(p, "pages", in_.value(2, 4));
    (void)growpage_policy_set_int(p, "min_tokens", 32);
    (void)growpage_policy_set_int(p, "retention.shared", in_.value(0, 1));
    (void)growpage_policy_set_int(p, "retention.strategy", in_.value(0, 1));
    (void)growpage_policy_set_int(p, "retention.recent", in_.value(0, 16));
    if (policies_.size() == 4) {
      (void)growpage_policy_destroy(policies_[0]);
      policies_.erase(policies_.begin());
    }
    policies_.push_back(p);
  }

  static std::int32_t decide(void* context, const growpage_boundary* boundary) {
    return static_cast<Session*>(context)->in_.byte() % 4 + (boundary->pages & 0);
  }

  void create_cache() {
    if (caches_.size() == 2) return;
    growpage_cache_options o;
    growpage_cache_options_init(&o, sizeof o);
    growpage_summary_options summary;
    growpage_summary_options_init(&summary, sizeof summary);
    growpage_retention_options retention;
    growpage_retention_options_init(&retention, sizeof retention);
    if (!policies_.empty()) (void)growpage_policy_get_retention(policies_.back(), &retention);
    o.backend = in_.rarely()          ? in_.small(0, 2)
                : in_.byte() % 3 == 0 ? GROWPAGE_BACKEND_NONE
                                      : GROWPAGE_BACKEND_CPU;
    o.isa = GROWPAGE_ISA_SCALAR;
    o.layers = static_cast<std::int32_t>(in_.within(0, max_layers));
    o.kv_heads = static_cast<std::int32_t>(in_.within(0, 2));
    o.query_heads = static_cast<std::int32_t>(in_.within(0, max_query_heads));
    o.head_dim = static_cast<std::int32_t>(in_.within(0, max_dim));
    o.value_dim = static_cast<std::int32_t>(in_.within(0, max_dim));
    if (in_.byte() < 200) {
      o.layers = 1;
      o.kv_heads = o.query_heads = 2;
      o.head_dim = 4;
    }
    o.page_size = in_.byte() & 1 ? 16 : max_page;
    o.pages = in_.within(0, max_pages);
    if (o.pages == 0 && !in_.rarely()) o.pages = 7;
    o.host_pages = in_.within(0, 6);
    o.max_sequences = static_cast<std::int32_t>(in_.within(0, max_sequences));
    if (o.max_sequences < 2) o.max_sequences = 4;
    o.max_pages_per_sequence = static_cast<std::int32_t>(in_.within(3, max_pages));
    o.max_fences = static_cast<std::int32_t>(in_.within(1, 6));
    o.event_capacity = in_.within(0, 5);
    o.prefix_caching = static_cast<std::int32_t>(in_.within(0, 1));
    o.dtype = in_.small(0, 2);
    o.layout = in_.small(0, 1);
    o.score_buffers = in_.small(1, 3);
    summary.slots = max_slots;
    summary.window = in_.byte() & 1 ? 16 : 0;
    summary.storage = in_.small(0, 1);
    o.summary = &summary;
    o.retention = &retention;
    // A struct of another version: shorter, or longer with something in its tail.
    alignas(8) std::array<char, 512> other{};
    if (in_.rarely()) {
      o.struct_size = in_.word() % other.size();
      if (in_.rarely()) other.back() = 1;
    }
    std::memcpy(other.data(), &o, sizeof o);
    growpage_cache* c = nullptr;
    if (growpage_cache_create(reinterpret_cast<const growpage_cache_options*>(other.data()),
                              nullptr, &c) != GROWPAGE_OK) {
      return;
    }
    caches_.push_back(c);
  }

  void create_scheduler() {
    if (schedulers_.size() == 2) return;
    growpage_scheduler_options o;
    growpage_scheduler_options_init(&o, sizeof o);
    o.max_batched_tokens = in_.value(1, 80);
    o.max_prefill_chunk = in_.value(0, 40);
    o.max_running = static_cast<std::int32_t>(in_.within(1, 4));
    o.summary_slots = static_cast<std::int32_t>(in_.within(1, max_slots));
    o.preemption = in_.small(0, 1);
    o.early_slots = static_cast<std::int32_t>(in_.within(0, 3));
    o.aging_steps = in_.value(0, 10);
    o.decision_capacity = in_.within(0, 20);
    growpage_scheduler* s = nullptr;
    if (growpage_scheduler_create(cache(), pick(policies_), &o, nullptr, &s) != GROWPAGE_OK) return;
    schedulers_.push_back(s);
  }

  void submit() {
    growpage_request r;
    growpage_request_init(&r, sizeof r);
    std::array<std::int32_t, max_text> prompt{};
    for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(i / 24);
    growpage_key key;
    growpage_key_init(&key, sizeof key);
    key.salt = "salt";
    key.salt_size = static_cast<std::size_t>(in_.within(0, 4));
    key.modality_from = in_.value(0, 40);
    r.tag = in_.byte();
    r.prompt = in_.rarely() ? nullptr : prompt.data();
    r.prompt_tokens = static_cast<std::size_t>(in_.within(0, max_text));
    r.max_new_tokens = in_.value(1, 120);
    r.priority = in_.small(0, 3);
    r.key = in_.byte() & 1 ? &key : nullptr;
    std::uint64_t made = 0;
    if (growpage_scheduler_submit(scheduler(), &r, &made) == GROWPAGE_OK) requests_.push_back(made);
  }

  // A whole step, with mistakes now and then.
  void step() {
    growpage_scheduler* s = scheduler();
    growpage_plan plan{};
    plan.struct_size = sizeof plan;
    growpage_cache_info info{};
    if (growpage_scheduler_schedule(s, &plan) != GROWPAGE_OK) {
      plan = {};
      if (!in_.rarely()) return;
    }
    info.struct_size = sizeof info;
    growpage_step_result r;
    growpage_step_result_init(&r, sizeof r);
    const bool kernels = !in_.rarely() && growpage_scheduler_run_before_forward(
                                              s, nullptr, &r.fences, &r.fence_count) == GROWPAGE_OK;
    if (in_.rarely()) abort_request();
    std::vector<std::uint64_t> fences;
    std::vector<growpage_measured_demand> demand;
    if (!kernels) {
      const bool apply = !in_.rarely();
      for (std::size_t i = 0; i < plan.swap_out_count; ++i)
        fences.push_back(plan.swap_outs[i].fence);
      for (std::size_t i = 0; i < plan.swap_in_count; ++i) fences.push_back(plan.swap_ins[i].fence);
      for (std::size_t i = 0; i < plan.compaction_count; ++i) {
        const growpage_ticket& t = plan.compactions[i].ticket;
        if (apply) {
          for (auto* c : caches_) apply_ticket(c, t, plan.compactions[i].protected_slots);
        }
        fences.push_back(t.fence);
      }
      r.fences = fences.data();
      r.fence_count = fences.size();
    }
    std::vector<growpage_sampled_token> tokens;
    for (std::size_t i = 0; i < plan.prefill_count; ++i) {
      sequences_.push_back(plan.prefills[i].sequence);
      if (plan.prefills[i].last != 0) tokens.push_back({plan.prefills[i].request, 1, 0, {}});
    }
    for (std::size_t i = 0; i < plan.decode_count; ++i) {
      tokens.push_back(
          {plan.decodes[i].request, in_.byte(), in_.rarely() ? in_.byte() : std::uint8_t{0}, {}});
      const growpage_summary_entry entry = {plan.decodes[i].summary, plan.decodes[i].summary_first};
      for (auto* c : caches_) update(c, &entry, 1);
    }
    if (growpage_scheduler_run_after_forward(s, nullptr, &r.demand, &r.demand_count) !=
        GROWPAGE_OK) {
      for (std::size_t i = 0; i < plan.demand_count; ++i) {
        demand.push_back({plan.demand[i].request, {in_.byte() / 8.0, in_.byte() / 8.0, 4}});
      }
      r.demand = demand.data();
      r.demand_count = demand.size();
    }
    if (in_.rarely() && !tokens.empty()) tokens.pop_back();
    if (in_.rarely() && !tokens.empty()) tokens.push_back(tokens[0]);
    if (in_.rarely() && r.fence_count > 0) --r.fence_count;
    const std::uint64_t failed = id(requests_);
    if (in_.rarely()) {
      r.failed = &failed;
      r.failed_count = 1;
    }
    r.tokens = tokens.data();
    r.token_count = tokens.size();
    (void)growpage_scheduler_complete(s, &r);
    const growpage_finished* finished = nullptr;
    std::size_t count = 0;
    std::size_t stride = 0;
    (void)growpage_scheduler_finished(s, &finished, &count, &stride);
  }

  void apply_ticket(growpage_cache* c, const growpage_ticket& t, std::int32_t protected_slots) {
    std::array<std::uint8_t, max_pages> marks{};
    std::array<std::int32_t, max_pages> kept{};
    growpage_sequence view{};
    view.struct_size = sizeof view;
    if (growpage_cache_get_sequence(c, t.sequence, &view) != GROWPAGE_OK) return;
    if (in_.byte() & 1) {
      (void)growpage_cache_compact(c, &t, in_.small(0, max_slots), in_.value(0, 100),
                                   protected_slots, nullptr);
      return;
    }
    if (growpage_cache_page_marks(c, t.sequence, protected_slots, marks.data(), marks.size()) !=
        GROWPAGE_OK) {
      return;
    }
    growpage_compaction_plan plan = {t.strategy, t.victims, {in_.small(0, 5), in_.small(0, 5)}};
    if (in_.byte() < 200) {
      (void)growpage_plan_compaction(marks.data(), kept.data(), view.page_count, t.victims,
                                     t.strategy, &plan);
    }
    (void)growpage_cache_apply_compaction(c, &t, &plan, in_.byte() & 1 ? kept.data() : nullptr,
                                          in_.byte() & 1 ? view.page_count : 0, 64);
  }

  void abort_request() { (void)growpage_scheduler_abort(scheduler(), id(requests_)); }

  void update(growpage_cache* c, const growpage_summary_entry* entries, std::size_t count) {
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

  void admit() {
    std::array<std::int32_t, max_text> tokens{};
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i / 24);
    std::uint64_t made = 0;
    std::int64_t matched = 0;
    growpage_cache* c = cache();
    const auto count = static_cast<std::size_t>(in_.within(0, max_text));
    (void)growpage_cache_match_length(c, tokens.data(), count, nullptr, &matched);
    if (growpage_cache_admit(c, tokens.data(), count, nullptr, &made, &matched) != GROWPAGE_OK)
      return;
    sequences_.push_back(made);
    if (!(in_.byte() & 1)) return;
    growpage_page_copy copy{};
    (void)growpage_cache_reserve(c, made, static_cast<std::int64_t>(count));
    const auto rest = static_cast<std::int64_t>(count) - matched;
    (void)growpage_cache_append(c, made, rest, tokens.data() + matched, &copy);
    (void)growpage_cache_mark_computed(c, made, static_cast<std::int32_t>(count));
  }

  void append() {
    std::array<std::int32_t, max_text> tokens{};
    growpage_page_copy copy{};
    const std::int64_t count = in_.rarely() ? INT64_MIN : in_.within(0, max_text);
    growpage_cache* c = cache();
    const std::uint64_t s = sequence();
    if (growpage_cache_append(c, s, count, in_.byte() & 1 ? tokens.data() : nullptr, &copy) ==
            GROWPAGE_OK &&
        copy.source >= 0) {
      (void)growpage_cache_run_copies(c, &copy, 1, nullptr);
    }
  }

  void append_batch() {
    std::array<std::uint64_t, max_batch> ids{};
    std::array<growpage_page_copy, max_batch> copies{};
    const std::array<std::int32_t, max_batch> tokens{};
    std::size_t count = 0;
    std::size_t done = 0;
    for (auto& one : ids) one = sequence();
    growpage_cache* c = cache();
    (void)growpage_cache_append_batch(c, ids.data(), in_.byte() & 1 ? tokens.data() : nullptr,
                                      static_cast<std::size_t>(in_.within(0, max_batch)),
                                      copies.data(), &count, &done);
    (void)growpage_cache_run_copies(c, copies.data(), count, nullptr);
  }

  void tables() {
    std::array<std::uint64_t, max_batch> ids{};
    std::array<std::int32_t, max_batch> counts{};
    std::array<std::int32_t, std::size_t{max_batch} * max_pages> block{};
    std::array<std::int32_t, max_batch + 1> small{};
    std::array<std::int32_t, max_batch> last{};
    std::array<std::int64_t, 256> slots{};
    std::array<std::int64_t, 256> positions{};
    growpage_cache* c = cache();
    const auto batch = static_cast<std::size_t>(in_.within(0, max_batch));
    for (std::size_t i = 0; i < batch; ++i) {
      ids[i] = sequence();
      counts[i] = in_.small(0, 8);
    }
    std::int64_t stride = 0;
    std::size_t size = 0;
    (void)growpage_cache_padded_tables(c, ids.data(), batch, &stride, nullptr, 0, 0, nullptr);
    stride += in_.within(0, 2);
    (void)growpage_cache_padded_tables(c, ids.data(), batch, &stride, block.data(), block.size(),
                                       -1, in_.byte() & 1 ? last.data() : nullptr);
    (void)growpage_cache_compressed_tables(c, ids.data(), batch, nullptr, nullptr, 0, &size,
                                           nullptr);
    (void)growpage_cache_compressed_tables(c, ids.data(), batch, small.data(), block.data(),
                                           in_.byte() & 1 ? block.size() : size, &size,
                                           last.data());
    (void)growpage_cache_token_tables(c, ids.data(), batch, counts.data(), slots.data(),
                                      in_.byte() & 1 ? positions.data() : nullptr, slots.size(),
                                      &size);
  }

  void compaction() {
    growpage_cache* c = cache();
    std::array<growpage_page_copy, max_pages> copies{};
    std::size_t count = 0;
    growpage_ticket t{};
    const std::uint64_t s = sequence();
    if (in_.byte() & 1) {  // a full sequence can be compacted
      growpage_sequence view{};
      view.struct_size = sizeof view;
      growpage_cache_info info{};
      info.struct_size = sizeof info;
      growpage_page_copy copy{};
      if (growpage_cache_get_sequence(c, s, &view) == GROWPAGE_OK &&
          growpage_cache_get_info(c, &info) == GROWPAGE_OK) {
        const auto all = static_cast<std::int64_t>(view.page_count) * info.page_size;
        (void)growpage_cache_append(c, s, all - view.slots, nullptr, &copy);
        (void)growpage_cache_mark_computed(c, s, static_cast<std::int32_t>(all));
      }
    }
    if (growpage_cache_begin_compaction(c, s, in_.small(1, 2), in_.small(0, 1), in_.small(0, 1),
                                        copies.data(), copies.size(), &count, &t) == GROWPAGE_OK) {
      fences_.push_back(t.fence);
      tickets_.push_back(t);
    }
    if (tickets_.empty()) return;
    t = tickets_[in_.byte() % tickets_.size()];
    if (in_.rarely()) t.victims = in_.small(1, 2);
    switch (in_.byte() % 4) {
      case 0:
        (void)growpage_cache_cancel_compaction(c, &t);
        break;
      case 1:
        (void)growpage_cache_compact(c, &t, in_.small(0, max_slots), in_.value(0, 100),
                                     in_.small(0, 40), nullptr);
        break;
      default:
        apply_ticket(c, t, in_.small(0, 20));
    }
  }

  void swap() {
    growpage_cache* c = cache();
    std::array<growpage_page_transfer, max_pages> transfers{};
    std::size_t count = 0;
    std::uint64_t fence = 0;
    const std::uint64_t s = sequence();
    const bool out = (in_.byte() & 1) != 0;
    const growpage_status status =
        out ? growpage_cache_swap_out(c, s, transfers.data(), transfers.size(), &count, &fence)
            : growpage_cache_swap_in(c, s, transfers.data(), transfers.size(), &count, &fence);
    if (status == GROWPAGE_OK) fences_.push_back(fence);
    if (in_.rarely()) {
      count = 1;
      transfers[0] = {in_.small(0, max_pages), in_.small(0, 6)};
    }
    const std::int32_t slot = in_.small(-1, max_slots);
    (void)(out ? growpage_cache_run_swap_out(c, s, slot, transfers.data(), count, nullptr)
               : growpage_cache_run_swap_in(c, s, slot, transfers.data(), count, nullptr));
  }

  void kernels() {
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
  void own_kernels() {
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

  void index() {
    if (indices_.empty() || in_.rarely()) {
      growpage_prefix_index* made = nullptr;
      if (growpage_prefix_index_create(in_.within(0, 8),
                                       static_cast<std::int32_t>(in_.within(0, 8)), nullptr,
                                       &made) == GROWPAGE_OK) {
        indices_.push_back(made);
      }
    }
    growpage_prefix_index* x = pick(indices_);
    growpage_prefix_link root{};
    (void)growpage_prefix_root(nullptr, &root);
    growpage_prefix_link link{};
    std::array<std::int32_t, 8> tokens{};
    tokens[0] = in_.byte() & 3;
    std::int32_t page = in_.small(0, 8);
    std::int32_t flag = 0;
    growpage_hash hash{};
    switch (in_.byte() % 6) {
      case 0:
      case 1:
        (void)growpage_prefix_index_publish(x, page, &root, tokens.data(), &link, &flag);
        break;
      case 2:
        (void)growpage_prefix_index_withdraw(x, page, &hash, &flag);
        break;
      case 3:
        (void)growpage_prefix_index_lru_push(x, page);
        break;
      case 4:
        (void)growpage_prefix_index_lru_remove(x, page);
        break;
      default:
        (void)growpage_prefix_index_lookup(x, &root, tokens.data(), &page, &link);
        (void)growpage_prefix_index_lru_oldest(x, &page);
    }
  }

  void look() {
    growpage_sequence view{};
    view.struct_size = in_.rarely() ? in_.byte() : sizeof view;
    growpage_cache_info info{};
    info.struct_size = in_.rarely() ? in_.byte() % (sizeof info + 1) : sizeof info;
    std::int64_t physical = 0;
    growpage_cache* c = cache();
    (void)growpage_cache_get_info(c, &info);
    if (view.struct_size <= sizeof view) (void)growpage_cache_get_sequence(c, sequence(), &view);
    (void)growpage_cache_physical_slot(c, sequence(), in_.small(0, 90), &physical);
    std::array<growpage_kv_event, 4> events{};
    std::size_t count = 0;
    (void)growpage_cache_drain_events(c, events.data(), events.size(), &count, nullptr);
    std::array<growpage_decision, 4> decisions{};
    if (growpage_scheduler_drain_decisions(scheduler(), decisions.data(), decisions.size(), &count,
                                           nullptr) == GROWPAGE_OK) {
      growpage_hash hash{};
      (void)growpage_decision_log_hash(decisions.data(), count, &hash);
    }
    const std::int32_t* text = nullptr;
    (void)growpage_scheduler_text(scheduler(), id(requests_), &text, &count);
    std::int32_t state = 0;
    (void)growpage_scheduler_state(scheduler(), id(requests_), &state);
    growpage_error error{};
    growpage_last_error(&error, sizeof error);
  }

  void policy() {
    growpage_policy* p = pick(policies_);
    growpage_boundary b{};
    b.struct_size = sizeof b;
    b.request = in_.byte();
    b.pages = in_.small(0, 9);
    b.page_size = in_.small(1, 32);
    b.measured = in_.small(0, 1);
    b.demand = {in_.byte() / 8.0, in_.byte() / 8.0, in_.value(0, 9)};
    std::int32_t decision = 0;
    (void)growpage_policy_decide(p, &b, &decision);
    (void)growpage_policy_validate(p, in_.small(0, 40));
    growpage_parameter parameter{};
    parameter.struct_size = sizeof parameter;
    if (growpage_policy_get_parameter(p, in_.byte() % 26, &parameter) != GROWPAGE_OK) return;
    double d = 0;
    const std::uint64_t w = in_.word();
    std::memcpy(&d, &w, sizeof d);
    (void)growpage_policy_set_double(p, parameter.name, d);
    (void)growpage_policy_get_double(p, parameter.name, &d);
    std::int64_t value = 0;
    (void)growpage_policy_set_int(p, parameter.name, static_cast<std::int64_t>(in_.value(0, 8)));
    (void)growpage_policy_get_int(p, parameter.name, &value);
  }

  void destroy() {
    switch (in_.byte() % 3) {
      case 0:
        (void)growpage_scheduler_destroy(scheduler());
        create_scheduler();
        break;
      case 1:
        (void)growpage_policy_destroy(pick(policies_));
        break;
      default:
        (void)growpage_cache_destroy(cache());
    }
    std::erase_if(caches_, [](growpage_cache* c) {
      growpage_cache_info info{};
      info.struct_size = sizeof info;
      return growpage_cache_get_info(c, &info) != GROWPAGE_OK;
    });
    std::erase_if(schedulers_, [](growpage_scheduler* s) {
      growpage_stats stats{};
      stats.struct_size = sizeof stats;
      return growpage_scheduler_get_stats(s, &stats) != GROWPAGE_OK;
    });
    create_policy();
    create_cache();
    create_scheduler();
  }

  void call() {
    switch (in_.byte() % 24) {
      case 0:
      case 1:
        return submit();
      case 2:
      case 3:
      case 4:
      case 5:
        return step();
      case 6:
        for (int i = 0; i < 20; ++i) step();
        return;
      case 7:
        return admit();
      case 8:
        return in_.byte() & 1 ? append() : append_batch();
      case 9:
        return tables();
      case 10:
        return compaction();
      case 11:
        return swap();
      case 12:
        return kernels();
      case 13:
        return own_kernels();
      case 14:
        return index();
      case 15:
        return look();
      case 16:
        return policy();
      case 17:
        return destroy();
      case 18:
        (void)growpage_cache_complete_fence(cache(), id(fences_));
        return;
      case 19:
        (void)growpage_cache_release(cache(), sequence());
        return;
      case 20: {
        std::uint64_t made = 0;
        if (growpage_cache_fork(cache(), sequence(), &made) == GROWPAGE_OK)
          sequences_.push_back(made);
        return;
      }
      case 21:
        (void)growpage_cache_truncate(cache(), sequence(), in_.value(0, 80));
        return;
      case 22: {
        std::uint64_t made = 0;
        if (growpage_cache_guard(cache(), sequence(), &made) == GROWPAGE_OK)
          fences_.push_back(made);
        (void)growpage_cache_grow(cache(), sequence());
        return;
      }
      default:
        abort_request();
        if (in_.rarely()) (void)growpage_cache_clear_prefix_cache(cache());
    }
  }

  Choices in_;
  std::vector<growpage_cache*> caches_;
  std::vector<growpage_scheduler*> schedulers_;
  std::vector<growpage_policy*> policies_;
  std::vector<growpage_prefix_index*> indices_;
  std::vector<std::uint64_t> sequences_, requests_, fences_;
  std::vector<growpage_ticket> tickets_;
  std::vector<float> floats_ = std::vector<float>(std::size_t{2} * 6 * 2 * max_page * max_dim);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Session(data, size).run();
  return 0;
}
