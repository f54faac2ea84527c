// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <array>
#include <cstdlib>

namespace growpage::fuzz {

void Session::index() {
  if (indices_.empty() || in_.rarely()) {
    growpage_prefix_index* made = nullptr;
    if (growpage_prefix_index_create(in_.within(0, 8), static_cast<std::int32_t>(in_.within(0, 8)),
                                     nullptr, &made) == GROWPAGE_OK) {
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

void Session::look() {
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

// Calls without a handle.
void Session::values() {
  // Structs of any version, in memory that is long enough for all of them.
  alignas(8) std::array<char, 512> bytes{};
  const std::size_t size = in_.rarely() ? in_.word() : std::size_t{8} * in_.byte() % bytes.size();
  if (size <= bytes.size() || size > 1 << 20) {  // beyond what a struct can have: refused
    (void)growpage_rope_init(reinterpret_cast<growpage_rope*>(bytes.data()), size);
    (void)growpage_hooks_init(reinterpret_cast<growpage_hooks*>(bytes.data()), size);
    (void)growpage_executor_init(reinterpret_cast<growpage_executor*>(bytes.data()), size);
    (void)growpage_demand_options_init(reinterpret_cast<growpage_demand_options*>(bytes.data()),
                                       size);
  }

  growpage_key key;
  growpage_key_init(&key, sizeof key);
  key.salt = in_.rarely() ? nullptr : "salt";
  key.salt_size = static_cast<std::size_t>(in_.within(0, 4));
  key.modality = in_.rarely() ? nullptr : "image";
  key.modality_size = static_cast<std::size_t>(in_.within(0, 5));
  key.modality_from = in_.value(0, 40);
  growpage_prefix_link root{};
  growpage_prefix_link joined{};
  (void)growpage_prefix_root(&key, &root);
  (void)growpage_prefix_join_modality(in_.rarely() ? nullptr : &root, &key, &joined);
  const std::array<std::int32_t, 8> tokens{};
  growpage_hash hash{};
  (void)growpage_hash_page(in_.rarely() ? nullptr : &root.hash, tokens.data(),
                           static_cast<std::size_t>(in_.within(0, 8)), &hash);
  const growpage_demand demand = {in_.byte() / 8.0, in_.byte() / 8.0, in_.value(0, 9)};
  (void)growpage_demand_delta(in_.rarely() ? nullptr : &demand);
  if (growpage_status_text(in_.small(-9, 7)) == nullptr) std::abort();

  std::array<growpage_decision, 2> decisions{};
  for (growpage_decision& one : decisions) {
    one.kind = in_.small(0, 5);
    one.delta = in_.byte() / 8.0;
    one.pages_before = in_.small(0, 9);
  }
  std::array<char, 1024> text{};
  std::size_t length = 0;
  (void)growpage_decisions_to_jsonl(in_.rarely() ? nullptr : decisions.data(), decisions.size(),
                                    in_.byte() & 1 ? text.data() : nullptr,
                                    static_cast<std::size_t>(in_.within(0, 4)) * 256, &length);
}

void Session::dlpack() {
  std::array<std::int64_t, 5> shape{};
  std::array<std::int64_t, 5> strides{};
  for (auto& extent : shape) extent = in_.value(1, 4);
  for (auto& stride : strides) stride = in_.value(1, 64);
  growpage_dl_tensor tensor{};
  tensor.data = in_.rarely() ? nullptr : floats_.data();
  tensor.device.type = in_.rarely() ? in_.small(0, 13) : 1;
  tensor.ndim = in_.rarely() ? in_.small(-1, 7) : 5;
  if (tensor.ndim > 5) tensor.ndim = INT32_MAX;  // refused before the arrays are read
  tensor.dtype = {in_.byte(), in_.byte(), in_.byte()};
  if (in_.byte() < 220) tensor.dtype = {2, 32, 1};
  tensor.shape = in_.rarely() ? nullptr : shape.data();
  tensor.strides = in_.byte() & 1 ? strides.data() : nullptr;
  tensor.byte_offset = in_.byte() * 4U;
  constexpr std::array<const char*, 6> names = {"lphtd", "lpthd", "lptd", "llllll", "", nullptr};
  const char* axes = names[in_.byte() < 200 ? 0 : in_.byte() % names.size()];
  const char* order = names[in_.byte() < 200 ? 1 : in_.byte() % names.size()];
  growpage_tensor view{};
  view.struct_size = in_.rarely() ? in_.byte() % (sizeof view + 1) : sizeof view;
  const growpage_dl_managed_tensor managed = {tensor, nullptr, nullptr};
  (void)growpage_tensor_from_dlpack(in_.rarely() ? nullptr : &managed, axes, order, &view);
  growpage_dl_managed_tensor_versioned versioned{};
  versioned.version.major = in_.rarely() ? in_.byte() : 1;
  versioned.flags = in_.byte() & 1;
  versioned.tensor = tensor;
  (void)growpage_tensor_from_dlpack_versioned(in_.rarely() ? nullptr : &versioned, axes, order,
                                              in_.small(0, 1), &view);
}

}  // namespace growpage::fuzz
