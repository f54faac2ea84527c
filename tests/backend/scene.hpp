// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "growpage/backend/contract.hpp"
#include "support/random_cache.hpp"

namespace growpage::test {

/// Memory of a backend with a host copy's values; freed with its scope.
template <KvBackend B, class T>
class DeviceArray {
 public:
  DeviceArray(B& backend, const std::vector<T>& values)
      : backend_(backend), size_(values.size()), memory_(backend.allocate(bytes())) {
    upload(values);
  }
  ~DeviceArray() { backend_.deallocate(memory_, bytes()); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  void upload(const std::vector<T>& values) {
    backend_.copy_from_host(memory_, values.data(), bytes(), {});
    backend_.synchronize({});
  }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(size_);
    backend_.copy_to_host(values.data(), memory_, bytes(), {});
    backend_.synchronize({});
    return values;
  }
  [[nodiscard]] T* get() const { return static_cast<T*>(memory_); }

 private:
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(size_ * sizeof(T)); }
  B& backend_;
  std::size_t size_;
  void* memory_;
};

struct SceneSpec {
  CacheShape shape{.layers = 2, .query_heads = 4, .kv_heads = 2, .head_dim = 64, .page_size = 16};
  DType dtype = DType::f32;
  Arrangement arrangement = Arrangement::hnd;
  std::int32_t slots = 64;
  std::int64_t position = 100;
  double key_scale = 1.0;
  double query_scale = 1.0;
  std::int32_t window = 4;
  std::int32_t steps = 6;
  bool v_in_k = false;
  std::uint64_t seed = 1;
};

struct BoundaryOutcome {
  Demand demand;
  std::vector<float> scores;  ///< [layer, kv_head, slots]
};

struct SelectOutcome {
  std::vector<std::uint64_t> bits;
  std::vector<std::int32_t> page_kept;
};

/// A small cache with one request in a backend's memory: random K, V and summaries, everything that
/// is not used NaN. Equal specs give equal scenes in every backend.
template <KvBackend B>
class Scene {
 public:
  Scene(B& backend, const SceneSpec& spec_in)
      : spec(spec_in), backend_(backend), random_(spec.seed) {
    const CacheShape& s = spec.shape;
    pages = table();
    k_host.assign(elements(s.head_dim) * dtype_bytes(spec.dtype), std::byte{0xff});
    v_host.assign(elements(s.v_dim()) * dtype_bytes(spec.dtype), std::byte{0xff});
    for_rows([&](std::int32_t layer, std::int32_t head, std::int32_t slot) {
      fill(k_host, s.head_dim, layer, head, slot, spec.key_scale);
      fill(v_host, s.v_dim(), layer, head, slot, 1.0);
    });
    k_ = std::make_unique<DeviceArray<B, std::byte>>(backend, k_host);
    v_ = std::make_unique<DeviceArray<B, std::byte>>(backend, v_host);
    for (std::int32_t l = 0; l < s.layers; ++l) {
      k_bases_.push_back(k_->get() + base(s.head_dim, l));
      v_bases_.push_back(v_->get() + base(s.v_dim(), l));
    }
    k_table_ = std::make_unique<DeviceArray<B, void*>>(backend, k_bases_);
    v_table_ = std::make_unique<DeviceArray<B, void*>>(backend, v_bases_);
    make_summaries();
    const auto workspace = backend.workspace_bytes(s, spec.slots);
    workspace_ = std::make_unique<DeviceArray<B, std::byte>>(
        backend, std::vector<std::byte>(static_cast<std::size_t>(workspace), std::byte{0xff}));
  }

  [[nodiscard]] std::int32_t page_count() const {
    return (spec.slots + spec.shape.page_size - 1) / spec.shape.page_size;
  }
  [[nodiscard]] std::int32_t rows() const { return spec.shape.layers * spec.shape.kv_heads; }
  [[nodiscard]] void* workspace() const { return workspace_->get(); }

  [[nodiscard]] KvView kv() const {
    KvView view;
    view.k = tensor(k_->get(), k_table_->get(), spec.shape.head_dim);
    view.v = tensor(v_->get(), v_table_->get(), spec.shape.v_dim());
    if (spec.v_in_k) view.v = view.k;
    return view;
  }
  [[nodiscard]] SummaryView summaries() const {
    SummaryView view;
    view.summaries = summaries_->get();
    view.query_rms = rms_->get();
    view.window = window_->get();
    view.steps = steps_->get();
    view.layers = spec.shape.layers;
    view.slots = 2;
    view.query_heads = spec.shape.query_heads;
    view.head_dim = spec.shape.head_dim;
    view.window_size = spec.window;
    return view;
  }

  BoundaryOutcome boundary(const DemandOptions& demand, const RetentionOptions& retention,
                           std::int32_t candidates, const RopeParams& rope = {}) {
    const std::vector<float> none(
        static_cast<std::size_t>(rows()) * static_cast<std::size_t>(spec.slots), -7.0F);
    DeviceArray<B, float> scores(backend_, none);
    BoundaryOutcome outcome;
    BoundaryPass pass;
    pass.shape = spec.shape;
    pass.kv = kv();
    pass.summaries = summaries();
    pass.rope = rope;
    pass.demand = demand;
    pass.retention = retention;
    pass.input = {pages.data(), spec.slots, candidates, 1, spec.position};
    pass.scores = scores.get();
    pass.score_stride = spec.slots;
    pass.result = &outcome.demand;
    backend_.boundary_pass(pass, workspace(), {});
    outcome.scores = scores.download();
    return outcome;
  }

  SelectOutcome select(const std::vector<float>& score_values, const RetentionOptions& retention,
                       const std::vector<std::uint8_t>& marks, std::int32_t keep,
                       std::int32_t protected_slots = 0) {
    DeviceArray<B, float> scores(backend_, score_values);
    DeviceArray<B, std::uint64_t> bits(
        backend_, std::vector<std::uint64_t>(static_cast<std::size_t>(rows() * words()), ~0ull));
    std::vector<std::int32_t> kept(static_cast<std::size_t>(page_count()), -1);
    Selection selection;
    selection.shape = spec.shape;
    selection.retention = retention;
    selection.scores = scores.get();
    selection.score_stride = spec.slots;
    selection.marks = marks.data();
    selection.protected_slots = protected_slots;
    selection.keep = keep;
    selection.out = keep_set(bits.get(), kept.data());
    backend_.select(selection, workspace(), {});
    return {bits.download(), kept};
  }

  /// Returns the scores as the compaction left them.
  std::vector<float> compact(const SelectOutcome& selected, const CompactionPlan& plan,
                             const std::vector<std::uint8_t>& marks,
                             const std::vector<float>& score_values) {
    DeviceArray<B, float> scores(backend_, score_values);
    DeviceArray<B, std::uint64_t> bits(backend_, selected.bits);
    CompactionMove move;
    move.shape = spec.shape;
    move.kv = kv();
    move.pages = pages.data();
    move.marks = marks.data();
    move.plan = plan;
    move.keep = keep_set(bits.get(), nullptr);
    move.scores = scores.get();
    move.score_stride = spec.slots;
    backend_.compact(move, workspace(), {});
    return scores.download();
  }

  [[nodiscard]] std::int64_t words() const { return (spec.slots + 63) / 64; }
  [[nodiscard]] KeepSet keep_set(std::uint64_t* bits, std::int32_t* page_kept) const {
    return {bits,         page_kept, spec.shape.layers, spec.shape.kv_heads, spec.slots,
            page_count(), words()};
  }
  /// Reads K (or V) back from the backend into k_host and v_host.
  void download() {
    k_host = k_->download();
    v_host = v_->download();
  }
  /// A row of the host copy, as floats.
  [[nodiscard]] std::vector<float> k_row(std::int32_t l, std::int32_t h, std::int32_t s) const {
    return row(k_host, spec.shape.head_dim, l, h, pages[static_cast<std::size_t>(page(s))], s);
  }
  [[nodiscard]] std::vector<float> v_row(std::int32_t l, std::int32_t h, std::int32_t s) const {
    return row(v_host, spec.shape.v_dim(), l, h, pages[static_cast<std::size_t>(page(s))], s);
  }
  template <class F>
  void for_rows(F&& f) const {
    for (std::int32_t l = 0; l < spec.shape.layers; ++l) {
      for (std::int32_t h = 0; h < spec.shape.kv_heads; ++h) {
        for (std::int32_t s = 0; s < spec.slots; ++s) f(l, h, s);
      }
    }
  }

  SceneSpec spec;
  std::vector<PageId> pages;
  std::vector<std::byte> k_host, v_host;
  std::vector<float> summary_host, rms_host, window_host;  ///< shapes of SummaryView, 2 slots

 private:
  static constexpr std::int32_t spare_pages = 3;

  [[nodiscard]] std::int32_t page(std::int32_t slot) const { return slot / spec.shape.page_size; }
  [[nodiscard]] std::int64_t pool() const { return page_count() + spare_pages; }
  std::vector<PageId> table() {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(pool()));
    std::iota(ids.begin(), ids.end(), 0);
    random_.shuffle(ids);
    std::vector<PageId> result;
    for (std::int32_t p = 0; p < page_count(); ++p) {
      result.push_back(PageId{ids[static_cast<std::size_t>(p)]});
    }
    return result;
  }
  [[nodiscard]] KvLayout layout(std::int32_t dim) const {
    if (spec.arrangement == Arrangement::nhd) return KvLayout::nhd(spec.shape, pool(), dim);
    if (spec.arrangement == Arrangement::padded) {
      const std::int64_t token = std::int64_t{spec.shape.kv_heads} * (dim + 3) + 5;
      const std::int64_t page_stride = token * spec.shape.page_size + 7;
      return {page_stride * pool() + 11, page_stride, dim + 3, token};
    }
    return KvLayout::hnd(spec.shape, pool(), dim);
  }
  [[nodiscard]] std::size_t elements(std::int32_t dim) const {
    return static_cast<std::size_t>(layout(dim).layer_stride * spec.shape.layers);
  }
  [[nodiscard]] std::int64_t base(std::int32_t dim, std::int32_t layer) const {
    // Per-layer pointers in reverse, so that base + layer · stride would be wrong.
    return layout(dim).layer_stride * (spec.shape.layers - 1 - layer) *
           static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  }
  [[nodiscard]] KvTensor tensor(void* memory, void* const* bases, std::int32_t dim) const {
    KvTensor t;
    t.layout = layout(dim);
    t.dtype = spec.dtype;
    if (spec.arrangement == Arrangement::per_layer) {
      t.layer_base = bases;
    } else {
      t.base = memory;
    }
    return t;
  }
  [[nodiscard]] std::int64_t element(std::int32_t dim, std::int32_t l, std::int32_t h, PageId p,
                                     std::int32_t slot) const {
    const KvLayout lay = layout(dim);
    const std::int32_t layer =
        spec.arrangement == Arrangement::per_layer ? spec.shape.layers - 1 - l : l;
    return layer * lay.layer_stride + lay.offset(p, h, slot % spec.shape.page_size);
  }
  void fill(std::vector<std::byte>& host, std::int32_t dim, std::int32_t l, std::int32_t h,
            std::int32_t slot, double scale) {
    const PageId p = pages[static_cast<std::size_t>(page(slot))];
    const std::int64_t first = element(dim, l, h, p, slot);
    for (std::int32_t i = 0; i < dim; ++i) {
      store_element(host.data(), spec.dtype, first + i,
                    static_cast<float>(scale * random_.normal()));
    }
  }
  [[nodiscard]] std::vector<float> row(const std::vector<std::byte>& host, std::int32_t dim,
                                       std::int32_t l, std::int32_t h, PageId p,
                                       std::int32_t slot) const {
    std::vector<float> values;
    const std::int64_t first = element(dim, l, h, p, slot);
    for (std::int32_t i = 0; i < dim; ++i) {
      values.push_back(load_element(host.data(), spec.dtype, first + i));
    }
    return values;
  }
  void make_summaries() {
    const CacheShape& s = spec.shape;
    const auto state_rows = static_cast<std::size_t>(s.layers) * 2;
    const auto query = static_cast<std::size_t>(s.query_heads * s.head_dim);
    const auto values = [&](std::size_t n) {
      std::vector<float> v(n);
      for (float& x : v) x = static_cast<float>(spec.query_scale * random_.normal());
      return v;
    };
    summary_host = values(state_rows * 2 * query);
    rms_host = values(state_rows * static_cast<std::size_t>(s.query_heads));
    for (float& x : rms_host) x = std::abs(x) + 0.1F;
    window_host = values(state_rows * static_cast<std::size_t>(spec.window) * query);
    summaries_ = std::make_unique<DeviceArray<B, float>>(backend_, summary_host);
    rms_ = std::make_unique<DeviceArray<B, float>>(backend_, rms_host);
    window_ = std::make_unique<DeviceArray<B, float>>(backend_, window_host);
    steps_ = std::make_unique<DeviceArray<B, std::int64_t>>(
        backend_, std::vector<std::int64_t>(state_rows, spec.steps));
  }

  B& backend_;
  Random random_;
  std::unique_ptr<DeviceArray<B, std::byte>> k_, v_, workspace_;
  std::vector<void*> k_bases_, v_bases_;
  std::unique_ptr<DeviceArray<B, void*>> k_table_, v_table_;
  std::unique_ptr<DeviceArray<B, float>> summaries_, rms_, window_;
  std::unique_ptr<DeviceArray<B, std::int64_t>> steps_;
};

}  // namespace growpage::test
