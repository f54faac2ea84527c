// SPDX-License-Identifier: Apache-2.0
#include "kernel_call.hpp"

#include <cmath>

#include "convert.hpp"
#include "defaults.hpp"
#include "layouts.hpp"
#include "structs.hpp"
#include "tensor.hpp"

namespace growpage::capi {

using detail::require_not_null;
using detail::require_range;

Status KernelCall::read(const growpage_kernel* kernel, KernelParts parts) {
  growpage_kernel in = default_kernel();
  Status s = read_required("growpage_kernel", kernel, in);
  if (!s.ok()) return s;
  shape = {in.layers, in.query_heads, in.kv_heads, in.head_dim, in.value_dim, in.page_size};
  if (s = shape.validate(); !s.ok()) return s;
  Executor executor;
  if (s = read_executor(in.executor, executor); !s.ok()) return s;
  CpuBackend::Isa isa{};
  if (!read_enum(s, "growpage_kernel.isa", in.isa, CpuBackend::Isa::simd, isa)) return s;
  backend = CpuBackend(executor, isa);
  if (parts == KernelParts::shape) return {};

  if (!require_range(s, "growpage_kernel.slots", in.slots, 1, 0x7fffffff - 64)) return s;
  slots = in.slots;
  page_count =
      static_cast<std::int32_t>((std::int64_t{slots} + shape.page_size - 1) / shape.page_size);
  if (!require_range(s, "growpage_kernel.pages", static_cast<std::int64_t>(in.pages), page_count,
                     INT64_MAX) ||
      !require_not_null(s, "growpage_kernel.block_table", in.block_table)) {
    return s;
  }
  std::int64_t memory_pages = 0;
  s = read_kv_tensor("growpage_kernel.k", in.k, shape, shape.head_dim, 1, true, kv.k, memory_pages);
  if (!s.ok()) return s;
  if (in.v != nullptr) {
    std::int64_t v_pages = 0;
    s = read_kv_tensor("growpage_kernel.v", in.v, shape, shape.v_dim(), memory_pages, true, kv.v,
                       v_pages);
    if (!s.ok()) return s;
  }
  if (s = kv.validate(shape, memory_pages); !s.ok()) return s;
  for (std::int32_t p = 0; p < page_count; ++p) {
    if (!require_range(s, "growpage_kernel.block_table", in.block_table[p], 0, memory_pages - 1)) {
      return s;
    }
  }
  pages = twin<const PageId>(in.block_table);
  if (parts == KernelParts::request) return {};

  const std::int64_t needed = backend.workspace_bytes(shape, slots);
  if (!require_not_null(s, "growpage_kernel.workspace", in.workspace) ||
      !require_range(s, "growpage_kernel.workspace_bytes",
                     static_cast<std::int64_t>(in.workspace_bytes), needed, INT64_MAX)) {
    return s;
  }
  workspace = in.workspace;
  return {};
}

Status KernelCall::read_summary(const growpage_summary_options* in, SummaryOptions& out) const {
  if (Status s = capi::read_summary(in, out); !s.ok()) return s;
  if (Status s = out.validate(shape.page_size); !s.ok()) return s;
  out = out.for_page_size(shape.page_size);
  const long double bytes = static_cast<long double>(shape.layers) * out.slots * shape.query_heads *
                            shape.head_dim * 4 * (2 + out.window);
  if (bytes < 1LL << 60) return {};
  return Status::invalid("growpage_summary_options.slots", std::int64_t{out.slots},
                         "summaries of less than 2^60 bytes");
}

Status KernelCall::read_state(const growpage_summary_state* state, const SummaryOptions& options,
                              SummaryView& out) const {
  growpage_summary_state in{};
  Status s = read_required("growpage_summary_state", state, in);
  if (!s.ok()) return s;
  if (!require_not_null(s, "growpage_summary_state.summaries", in.summaries) ||
      !require_not_null(s, "growpage_summary_state.query_rms", in.query_rms) ||
      !require_not_null(s, "growpage_summary_state.steps", in.steps) ||
      (options.window > 0 && !require_not_null(s, "growpage_summary_state.window", in.window))) {
    return s;
  }
  out.summaries = in.summaries;
  out.query_rms = in.query_rms;
  out.window = options.window > 0 ? in.window : nullptr;
  out.steps = in.steps;
  out.storage = options.storage;
  out.layers = shape.layers;
  out.slots = options.slots;
  out.query_heads = shape.query_heads;
  out.head_dim = shape.head_dim;
  out.window_size = options.window;
  return {};
}

Status KernelCall::read_query(const growpage_query* query, BoundaryPass& out) const {
  growpage_query in = default_query();
  Status s = read_required("growpage_query", query, in);
  if (!s.ok()) return s;
  SummaryOptions summary;
  if (s = read_summary(in.summary, summary); !s.ok()) return s;
  if (s = read_state(in.state, summary, out.summaries); !s.ok()) return s;
  if (s = read_rope(in.rope, out.rope); !s.ok()) return s;
  if (s = out.rope.validate(shape.head_dim); !s.ok()) return s;
  if (s = read_demand(in.demand, out.demand); !s.ok()) return s;
  if (s = out.demand.validate(); !s.ok()) return s;
  if (s = read_retention(in.retention, out.retention); !s.ok()) return s;
  if (s = out.retention.validate(shape.page_size); !s.ok()) return s;
  if (out.retention.score == ScoreKind::window && summary.window < out.retention.window) {
    return Status::invalid("growpage_summary_options.window", std::int64_t{summary.window},
                           "at least growpage_retention_options.window with window scoring");
  }
  if (!(in.softmax_scale >= 0.0F) || !std::isfinite(in.softmax_scale)) {
    return Status::invalid("growpage_query.softmax_scale", double{in.softmax_scale},
                           "finite, at least 0");
  }
  const std::int64_t last = out.rope.rotary_dim > 0 && out.rope.cos_table != nullptr
                                ? out.rope.max_position - 1
                                : std::int64_t{1} << 40;
  if (!require_range(s, "growpage_query.summary_slot", in.summary_slot, 0, summary.slots - 1) ||
      !require_range(s, "growpage_query.position", in.position, 0, last)) {
    return s;
  }
  out.shape = shape;
  out.kv = kv;
  out.softmax_scale = in.softmax_scale;
  out.input.pages = pages;
  out.input.slots = slots;
  out.input.candidates = (slots - 1) / shape.page_size * shape.page_size;
  out.input.summary_slot = in.summary_slot;
  out.input.position = in.position;
  return {};
}

}  // namespace growpage::capi
