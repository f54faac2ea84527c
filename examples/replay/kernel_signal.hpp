// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/schedule/step_plan.hpp"
#include "signal.hpp"
#include "tensor_generator.hpp"

namespace growpage::replay {

/// `--signal kernels`: an engine whose model is a TensorGenerator. K and V of every token are
/// written, every decode step updates the summaries, Δ and compactions run the CPU kernels. The
/// clock counts the time of those kernels on this machine; making the tensors is not in it.
class KernelSignal {
 public:
  using Cache = PagedKVCache<CpuBackend>;
  static constexpr const char* name = "kernels";

  /// Both are borrowed; `cache` was made with `generator.rope()` and for its shape.
  KernelSignal(Cache& cache, const TensorGenerator& generator);

  Status before_forward(const StepPlan& plan, std::vector<FenceId>& fences);
  Status forward(const StepPlan& plan, const TextOf& text);
  Status after_forward(const StepPlan& plan, std::vector<MeasuredDemand>& demand);
  /// Measured time of the kernels of the step just run.
  [[nodiscard]] double step_seconds() const noexcept { return seconds_; }

 private:
  struct Row {
    TokenId token;
    std::int64_t position;
    std::uint64_t tag;
  };
  Status write_rows();
  Status update_summaries();

  Cache* cache_;
  const TensorGenerator* generator_;
  double seconds_ = 0;
  std::vector<Row> rows_;              // tokens of the step …
  std::vector<std::int64_t> slots_;    // … and where their K/V goes
  std::vector<Row> queries_;           // tokens whose queries enter the summaries …
  std::vector<SummaryEntry> entries_;  // … and of which slot
  std::vector<float> k_, v_, q_;
  std::vector<BFloat16> k_rows_, v_rows_;
};

}  // namespace growpage::replay
