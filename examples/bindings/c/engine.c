/* SPDX-License-Identifier: Apache-2.0 */
/* An engine loop in C: the scenario of ../scenario.md. Prints what happened and the hash of all
 * decisions, which is the same in every language. */
#include <growpage/growpage.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 2, QUERY_HEADS = 4, KV_HEADS = 2, DIM = 32, PAGE = 16, REQUESTS = 6, SLOTS = 8 };

static void check(growpage_status status) {
  growpage_error error;
  if (status == GROWPAGE_OK) return;
  growpage_last_error(&error, sizeof error);
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

/* Stands for the model: pseudo-random projections of a token at a position, exact in float. */
static void project(float* out, int32_t token, int64_t position, int role, int heads) {
  for (int i = 0; i < heads * DIM; ++i) {
    uint64_t z = (uint64_t)token * 0x9E3779B97F4A7C15u + (uint64_t)position * 0xBF58476D1CE4E5B9u +
                 (uint64_t)role * 0x94D049BB133111EBu + (uint64_t)i;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    out[i] = (float)((int64_t)(z >> 40) - (1 << 23)) / (float)(1 << 23);
  }
}

/* Stands for sampling. */
static int32_t next_token(int32_t token, int64_t position) {
  return (int32_t)((token * 31 + position * 17 + 7) % 1000);
}

/* One token through the model: K and V into its slot and, with summary >= 0, its query into the
 * summaries. A real engine does this for the whole batch at once. */
static void forward(growpage_cache* cache, int32_t token, int64_t position, int64_t slot,
                    int32_t summary, int32_t first) {
  float k[KV_HEADS * DIM], v[KV_HEADS * DIM], q[LAYERS * QUERY_HEADS * DIM];
  for (int layer = 0; layer < LAYERS; ++layer) {
    project(q + layer * QUERY_HEADS * DIM, token, position, 3 * layer, QUERY_HEADS);
    project(k, token, position, 3 * layer + 1, KV_HEADS);
    project(v, token, position, 3 * layer + 2, KV_HEADS);
    check(growpage_cache_append_kv(cache, layer, &slot, 1, k, v, NULL));
  }
  if (summary < 0) return;
  growpage_summary_entry entry = {summary, first};
  growpage_tensor queries;
  growpage_tensor_init(&queries, sizeof queries);
  queries.data = q, queries.ndim = 4;
  queries.shape[0] = LAYERS, queries.shape[1] = 1, queries.shape[2] = QUERY_HEADS;
  queries.shape[3] = DIM;
  check(growpage_cache_update_summaries(cache, &entry, 1, &queries, 0, LAYERS, NULL));
}

int main(void) {
  /* 1. The policy, the cache, the scheduler. */
  growpage_policy* policy = NULL;
  check(growpage_policy_create("growpage", NULL, &policy));
  check(growpage_policy_set_int(policy, "initial_pages", 4));

  growpage_retention_options retention;
  growpage_retention_options_init(&retention, sizeof retention);
  check(growpage_policy_get_retention(policy, &retention));
  growpage_summary_options summary;
  growpage_summary_options_init(&summary, sizeof summary);
  summary.slots = SLOTS;
  growpage_cache_options options;
  growpage_cache_options_init(&options, sizeof options);
  options.backend = GROWPAGE_BACKEND_CPU, options.isa = GROWPAGE_ISA_SCALAR; /* equal bits */
  options.layers = LAYERS, options.query_heads = QUERY_HEADS, options.kv_heads = KV_HEADS;
  options.head_dim = DIM, options.page_size = PAGE, options.pages = 24;
  options.dtype = GROWPAGE_F32, options.summary = &summary, options.retention = &retention;
  growpage_cache* cache = NULL;
  check(growpage_cache_create(&options, NULL, &cache));

  growpage_scheduler_options limits;
  growpage_scheduler_options_init(&limits, sizeof limits);
  limits.max_running = SLOTS, limits.summary_slots = SLOTS, limits.decision_capacity = 4096;
  growpage_scheduler* scheduler = NULL;
  check(growpage_scheduler_create(cache, policy, &limits, NULL, &scheduler));
  check(growpage_policy_destroy(policy));

  /* 2. Some requests. */
  for (int tag = 0; tag < REQUESTS; ++tag) {
    int32_t prompt[20 + 7 * REQUESTS];
    growpage_request request;
    growpage_request_init(&request, sizeof request);
    request.prompt_tokens = (size_t)(20 + 7 * tag);
    for (size_t i = 0; i < request.prompt_tokens; ++i) prompt[i] = tag + 1;
    request.tag = (uint64_t)tag, request.prompt = prompt, request.max_new_tokens = 150;
    uint64_t id;
    check(growpage_scheduler_submit(scheduler, &request, &id));
  }

  /* 3. The loop. */
  growpage_stats stats = {.struct_size = sizeof stats};
  for (;;) {
    check(growpage_scheduler_get_stats(scheduler, &stats));
    if (stats.idle) break;
    growpage_plan plan = {.struct_size = sizeof plan};
    check(growpage_scheduler_schedule(scheduler, &plan));
    growpage_step_result result;
    growpage_step_result_init(&result, sizeof result);
    check(growpage_scheduler_run_before_forward(scheduler, NULL, &result.fences,
                                                &result.fence_count));
    growpage_sampled_token tokens[2 * SLOTS] = {{0}};
    for (size_t n = 0; n < plan.prefill_count; ++n) {
      const growpage_prefill* chunk =
          (const void*)((const char*)plan.prefills + n * plan.prefill_stride);
      const int32_t* text;
      size_t length;
      check(growpage_scheduler_text(scheduler, chunk->request, &text, &length));
      for (int32_t i = 0; i < chunk->tokens; ++i) {
        const int64_t position = chunk->first_position + i;
        int64_t slot;
        check(growpage_cache_physical_slot(cache, chunk->sequence, chunk->first_slot + i, &slot));
        const int starts = i + 1 == chunk->tokens ? chunk->summary : -1;
        forward(cache, text[position], position, slot, starts, 1);
      }
      if (!chunk->last) continue;
      const int64_t end = chunk->first_position + chunk->tokens - 1;
      tokens[result.token_count].request = chunk->request;
      tokens[result.token_count++].token = next_token(text[end], end);
    }
    for (size_t n = 0; n < plan.decode_count; ++n) {
      const growpage_decode* item =
          (const void*)((const char*)plan.decodes + n * plan.decode_stride);
      forward(cache, item->token, item->position, item->slot, item->summary, item->summary_first);
      tokens[result.token_count].request = item->request;
      tokens[result.token_count++].token = next_token(item->token, item->position);
    }
    check(growpage_scheduler_run_after_forward(scheduler, NULL, &result.demand,
                                               &result.demand_count));
    result.tokens = tokens;
    check(growpage_scheduler_complete(scheduler, &result));
  }

  /* 4. What was decided. */
  static growpage_decision decisions[4096];
  size_t count;
  growpage_hash hash;
  check(growpage_scheduler_drain_decisions(scheduler, decisions, 4096, &count, NULL));
  check(growpage_decision_log_hash(decisions, count, &hash));
  printf("%" PRId64 " tokens, %" PRId64 " steps, %" PRId64 " grow, %" PRId64 " compact\n",
         stats.decode_tokens, stats.steps, stats.grow, stats.compact);
  printf("decision log: %zu entries, hash %016" PRIx64 "%016" PRIx64 "\n", count, hash.high,
         hash.low);
  check(growpage_scheduler_destroy(scheduler));
  check(growpage_cache_destroy(cache));
  return 0;
}
