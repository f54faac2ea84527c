// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include "defaults.hpp"
#include "structs.hpp"

namespace growpage::capi {

Status read_executor(const growpage_executor* in, Executor& out) {
  growpage_executor executor = default_executor();
  if (Status s = read_struct("growpage_executor", in, executor); !s.ok()) return s;
  Status s;
  if (!detail::require_range(s, "growpage_executor.workers", executor.workers, 1, 4096)) return s;
  if (executor.workers > 1 &&
      !detail::require_not_null(s, "growpage_executor.run",
                                reinterpret_cast<const void*>(executor.run))) {
    return s;
  }
  out = {executor.run, executor.context, executor.workers};
  return {};
}

Status read_key(const growpage_key* in, ExtraKey& out) {
  growpage_key key = default_key();
  if (Status s = read_struct("growpage_key", in, key); !s.ok()) return s;
  Status s;
  if (!require_array(s, "growpage_key.salt", key.salt, key.salt_size) ||
      !require_array(s, "growpage_key.lora", key.lora, key.lora_size) ||
      !require_array(s, "growpage_key.modality", key.modality, key.modality_size) ||
      !detail::require_range(s, "growpage_key.modality_from", key.modality_from, 0,
                             std::int64_t{1} << 40)) {
    return s;
  }
  out = {{key.salt, key.salt_size},
         {key.lora, key.lora_size},
         {key.modality, key.modality_size},
         key.modality_from};
  return {};
}

Status read_summary(const growpage_summary_options* in, SummaryOptions& out) {
  growpage_summary_options options = default_summary();
  if (Status s = read_struct("growpage_summary_options", in, options); !s.ok()) return s;
  Status s;
  if (!read_enum(s, "growpage_summary_options.storage", options.storage,
                 SummaryOptions::Storage::f16_stochastic, out.storage)) {
    return s;
  }
  out.beta_short = options.beta_short;
  out.beta_long = options.beta_long;
  out.slots = options.slots;
  out.window = options.window;
  out.seed = options.seed;
  return {};
}

Status read_rope(const growpage_rope* in, RopeParams& out) {
  growpage_rope rope = default_rope();
  if (Status s = read_struct("growpage_rope", in, rope); !s.ok()) return s;
  Status s;
  if (!read_enum(s, "growpage_rope.pairing", rope.pairing, RopePairing::interleaved, out.pairing)) {
    return s;
  }
  out.rotary_dim = rope.rotary_dim;
  out.inv_freq = rope.inv_freq;
  out.cos_table = rope.cos_table;
  out.sin_table = rope.sin_table;
  out.max_position = rope.max_position;
  out.attention_scale = rope.attention_scale;
  return {};
}

Status read_demand(const growpage_demand_options* in, DemandOptions& out) {
  growpage_demand_options options = default_demand();
  if (Status s = read_struct("growpage_demand_options", in, options); !s.ok()) return s;
  Status s;
  if (!read_enum(s, "growpage_demand_options.metric", options.metric, DemandMetric::entropy,
                 out.metric) ||
      !read_enum(s, "growpage_demand_options.group", options.group, GroupReduction::per_query_head,
                 out.group)) {
    return s;
  }
  out.p = options.p;
  out.layer_mask = options.layer_mask;
  return {};
}

Status read_retention(const growpage_retention_options* in, RetentionOptions& out) {
  growpage_retention_options options = default_retention();
  if (Status s = read_struct("growpage_retention_options", in, options); !s.ok()) return s;
  Status s;
  if (!read_enum(s, "growpage_retention_options.score", options.score, ScoreKind::window,
                 out.score) ||
      !read_enum(s, "growpage_retention_options.strategy", options.strategy,
                 CompactionStrategy::in_order, out.strategy) ||
      !read_enum(s, "growpage_retention_options.shared", options.shared, SharedPages::copy,
                 out.shared) ||
      !detail::require_range(s, "growpage_retention_options.protect_prompt", options.protect_prompt,
                             0, 1)) {
    return s;
  }
  out.recent = options.recent;
  out.local_per_256 = options.local_per_256;
  out.sinks = options.sinks;
  out.protect_prompt = options.protect_prompt != 0;
  out.window = options.window;
  out.max_pool = options.max_pool;
  out.global_decay = options.global_decay;
  out.redundancy_weight = options.redundancy_weight;
  out.redundancy_temperature = options.redundancy_temperature;
  return {};
}

growpage_retention_options to_c_retention(const RetentionOptions& in) noexcept {
  growpage_retention_options out{};
  out.struct_size = sizeof out;
  out.score = static_cast<std::int32_t>(in.score);
  out.strategy = static_cast<std::int32_t>(in.strategy);
  out.shared = static_cast<std::int32_t>(in.shared);
  out.recent = in.recent;
  out.local_per_256 = in.local_per_256;
  out.sinks = in.sinks;
  out.protect_prompt = in.protect_prompt ? 1 : 0;
  out.window = in.window;
  out.max_pool = in.max_pool;
  out.global_decay = in.global_decay;
  out.redundancy_weight = in.redundancy_weight;
  out.redundancy_temperature = in.redundancy_temperature;
  return out;
}

}  // namespace growpage::capi
