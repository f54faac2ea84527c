/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GROWPAGE_GROWPAGE_H
#define GROWPAGE_GROWPAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * growpage: a paged KV cache that grows or compacts by measured attention demand. The C interface.
 *
 * Contents
 *   1  Library, statuses, errors     4  Policy         7  Prefix hashes and prefix index
 *   2  Hooks, tensors, options       5  Scheduler      8  Kernels on the engine's own memory
 *   3  Cache                         6  Decision log   9  DLPack
 *
 * Quick example (a whole engine loop is in examples/bindings/c, the integration guide in
 * docs/embedding.md)
 *
 *     growpage_policy* policy;
 *     growpage_policy_create("growpage", NULL, &policy);
 *
 *     growpage_cache_options options;
 *     growpage_cache_options_init(&options, sizeof options);
 *     options.backend = GROWPAGE_BACKEND_CPU;
 *     options.layers = 1, options.query_heads = 4, options.kv_heads = 2, options.head_dim = 32;
 *     options.page_size = 16, options.pages = 24;
 *     growpage_cache* cache;
 *     if (growpage_cache_create(&options, NULL, &cache) != GROWPAGE_OK) {
 *       growpage_error error;
 *       growpage_last_error(&error, sizeof error);
 *       puts(error.message);
 *     }
 *     growpage_scheduler* scheduler;
 *     growpage_scheduler_create(cache, policy, NULL, NULL, &scheduler);
 *     growpage_scheduler_submit(scheduler, &request, &id);
 *     while (growpage_scheduler_schedule(scheduler, &plan) == GROWPAGE_OK) {
 *       growpage_scheduler_run_before_forward(scheduler, NULL, &fences, &fence_count);
 *       ... the engine's forward pass over plan.prefills and plan.decodes ...
 *       growpage_scheduler_run_after_forward(scheduler, NULL, &demand, &demand_count);
 *       growpage_scheduler_complete(scheduler, &result);
 *     }
 *
 * Rules that hold for every call
 *
 * Statuses. 0 is success, > 0 is retryable (nothing is wrong; try again when something was
 *   released or a fence completed), < 0 is an error, explained by growpage_last_error. Nothing
 *   throws, prints or aborts.
 * Handles and ids. Handles are opaque: not pointers to anything. A null, destroyed or foreign
 *   handle answers GROWPAGE_INVALID_ARGUMENT. Sequence, request and fence ids are 64-bit and carry
 *   a generation; 0 is never an id, and an id whose object is gone answers GROWPAGE_STALE_ID.
 * Structs. Those that begin with `struct_size` may get fields at their end in later versions. The
 *   caller sets it to sizeof the struct, a multiple of 8 (the *_init calls do). Inputs: a missing
 *   tail means defaults, a tail this library does not know must be zero, else
 *   GROWPAGE_INVALID_ARGUMENT. Outputs: the caller sets struct_size, the known part is written,
 *   the rest zeroed. Structs without struct_size are frozen, except that rows read from the
 *   library come with a stride: step by it, not by sizeof. `reserved` fields: 0 in inputs,
 *   undefined in outputs.
 * Memory. Everything passed in is borrowed for the call unless a comment says longer. Pointers
 *   handed out stay owned by the library and say how long they are valid. Shapes stand in
 *   brackets, strides are in elements. The library checks values, but it cannot check that the
 *   memory behind a pointer is as long as the shape says.
 * Reentrancy. Call-backs must return (no exception, no longjmp) and must not call the library.
 *
 * Every call is marked [threads | after failure | device] and with its first version:
 *   free        no handle: any thread, any time
 *   shared      takes a const handle: may run together with other `shared` calls on that handle
 *   exclusive   nothing else may run on that handle, nor on the cache a scheduler uses
 *   kept        on any status but GROWPAGE_OK nothing has changed and no output was written
 *   host        host work only, whatever the backend
 *   enqueues    work is enqueued on `stream` (a cudaStream_t; the CPU backend ignores it and has
 *               done its work on return); safe in graph capture
 *   synchronises  waits for `stream`
 */

#if defined(__GNUC__)
#define GROWPAGE_API __attribute__((visibility("default")))
#else
#define GROWPAGE_API
#endif

/* ==== 1  Library, statuses, errors ========================================================== */

/* Counts up with every addition to this header. Compare with growpage_api_revision() to learn
 * whether the library at run time is at least as new. */
#define GROWPAGE_API_REVISION 1

typedef int32_t growpage_status;
enum {
  GROWPAGE_OK = 0,

  GROWPAGE_OUT_OF_PAGES = 1,      /* no free and no evictable page now */
  GROWPAGE_OUT_OF_SEQUENCES = 2,  /* every sequence slot is taken */
  GROWPAGE_OUT_OF_SLOTS = 3,      /* every query-summary slot is taken */
  GROWPAGE_AT_CAPACITY = 4,       /* the sequence's pages are full: a capacity boundary */
  GROWPAGE_OUT_OF_FENCES = 5,     /* every fence is open */
  GROWPAGE_OUT_OF_HOST_PAGES = 6, /* swap space is full */
  GROWPAGE_BUSY = 7,              /* the sequence is under compaction or swap */

  GROWPAGE_INVALID_ARGUMENT = -1,  /* growpage_last_error says which, its value, what is allowed */
  GROWPAGE_STALE_ID = -2,          /* the id's object is gone or never was */
  GROWPAGE_BEHIND_COMPACTION = -3, /* rollback across a compaction, whose evicted rows are gone */
  GROWPAGE_REQUEST_TOO_LARGE = -4, /* can never fit, however long it waits */
  GROWPAGE_UNSUPPORTED = -5,       /* valid, but not offered by this build or backend */
  GROWPAGE_PROTOCOL_ERROR = -6,    /* a call out of order, e.g. complete without schedule */
  GROWPAGE_OUT_OF_MEMORY = -7,     /* host memory, or the allocate hook returned null */
  GROWPAGE_INTERNAL_ERROR = -8,    /* a call-back threw, or a defect of the library */
  GROWPAGE_DEVICE_ERROR = -9       /* the device or its driver refused a call */
};

/* "0.1.0": the library's version. Never null. [free | host] since 0.1 */
GROWPAGE_API const char* growpage_version(void);
/* GROWPAGE_API_REVISION of the library at run time. [free | host] since 0.1 */
GROWPAGE_API int32_t growpage_api_revision(void);
/* "out_of_pages", "invalid_argument", …; "unknown" for other values. Never null.
 * [free | host] since 0.1 */
GROWPAGE_API const char* growpage_status_text(growpage_status status);

/* Why the last call on this thread failed. Never null; empty when there is nothing to say. */
typedef struct growpage_error {
  size_t struct_size;
  growpage_status status;
  int32_t reserved;
  const char* argument; /* "CacheShape::kv_heads" */
  const char* value;    /* "3" */
  const char* allowed;  /* "a divisor of query_heads (2)" */
  const char* message;  /* all of it in one line */
} growpage_error;
/* The last status other than GROWPAGE_OK that a call on this thread returned. Texts longer than 500
 * bytes are cut. The strings are valid until the next call on this thread. A null `error` or a
 * `struct_size` below sizeof(size_t) is ignored. `struct_size` = sizeof *error.
 * [free | host] since 0.1 */
GROWPAGE_API void growpage_last_error(growpage_error* error, size_t struct_size);

/* ==== 2  Hooks, tensors, options ================================================================
 *
 * growpage_X_init(x, sizeof *x) sets every field to its default and struct_size to the size given.
 * A null pointer or a size below sizeof(size_t) answers GROWPAGE_INVALID_ARGUMENT.
 */

enum {
  GROWPAGE_LOG_ERROR = 0,   /* memory could not be had */
  GROWPAGE_LOG_WARNING = 1, /* a call was refused with an error; a call-back misbehaved */
  GROWPAGE_LOG_DEBUG = 2    /* rare events: preemption, memory taken */
};

/* Per handle; null functions mean the library's own way. Contexts and functions are borrowed until
 * the handle is destroyed.
 *
 * The allocator serves the handle object itself and, with the CPU backend, the KV memory (unless
 * the engine brought its own), query summaries, scores and workspace. `allocate` returns memory
 * aligned to `alignment` (a power of two up to 64), or null; the library zeroes it. Tables of the
 * bookkeeping (block tables, page states, prefix index, queues) and host swap space come from
 * malloc: most of it is backed lazily by the operating system, which a hook could not promise. */
typedef struct growpage_hooks {
  size_t struct_size;
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*deallocate)(void* context, void* memory, size_t bytes); /* set iff allocate is */
  void* allocator_context;
  void (*log)(void* context, int32_t level, const char* message); /* message: for the call only */
  void* log_context;
  int32_t log_level; /* the highest GROWPAGE_LOG_* that is wanted; default GROWPAGE_LOG_WARNING */
  int32_t reserved;
} growpage_hooks;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_hooks_init(growpage_hooks* hooks, size_t struct_size);

enum { GROWPAGE_F32 = 0, GROWPAGE_F16 = 1, GROWPAGE_BF16 = 2 };

#define GROWPAGE_MAX_DIMS 6

/* A strided array, borrowed. Its axes have the order that the comment of its user gives, whatever
 * the order in memory: strides say that. The last axis must be contiguous (stride 1). */
typedef struct growpage_tensor {
  size_t struct_size;
  void* data; /* null when layer_data is given */
  /* [layer] one pointer a layer, for engines that allocate K and V per layer; strides[0] is then
   * not read. Null otherwise. Borrowed as long as the tensor. */
  void* const* layer_data;
  int32_t dtype; /* GROWPAGE_F32, … */
  int32_t ndim;
  int64_t shape[GROWPAGE_MAX_DIMS];
  int64_t strides[GROWPAGE_MAX_DIMS]; /* in elements; all zero = packed in the order of the axes */
} growpage_tensor;
/* All zero: f32, no data. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_tensor_init(growpage_tensor* tensor, size_t struct_size);

/* Threads the engine lends to the CPU backend; the library starts none. `run` calls
 * task(argument, i, worker) exactly once for every i in [0, tasks), worker in [0, workers), no two
 * concurrent calls sharing a worker, and returns when all have returned. */
typedef void (*growpage_task)(void* argument, int64_t index, int32_t worker);
typedef struct growpage_executor {
  size_t struct_size;
  void (*run)(void* context, int64_t tasks, growpage_task task, void* argument);
  void* context;
  int32_t workers; /* ≥ 1 */
  int32_t reserved;
} growpage_executor;
/* The calling thread alone. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_executor_init(growpage_executor* executor,
                                                    size_t struct_size);

/* What besides the tokens decides the content of a page; the three live in separate domains. Empty
 * = absent. Where a key is taken, null means none of them. */
typedef struct growpage_key {
  size_t struct_size;
  const char* salt; /* [salt_size] bytes: tenant or cache salt */
  size_t salt_size;
  const char* lora; /* [lora_size] bytes: adapter id */
  size_t lora_size;
  const char* modality; /* [modality_size] bytes: digest of images, audio, … */
  size_t modality_size;
  int64_t modality_from; /* ≥ 0, first position the modality affects */
} growpage_key;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_key_init(growpage_key* key, size_t struct_size);

enum { GROWPAGE_STORAGE_F32 = 0, GROWPAGE_STORAGE_F16_STOCHASTIC = 1 };

/* The two smoothed query summaries of every running request (paper, section 3.2). */
typedef struct growpage_summary_options {
  size_t struct_size;
  float beta_short; /* 0.9, weight of the OLD value, at least 0 */
  float beta_long;  /* 0 = 1 − 0.256 / page_size; else beta_short < beta_long < 1 */
  int32_t slots;    /* 512, requests that can run at once */
  int32_t window;   /* 0, recent queries kept per slot, for window scoring */
  int32_t storage;  /* GROWPAGE_STORAGE_* */
  int32_t reserved;
  uint64_t seed; /* of stochastic rounding */
} growpage_summary_options;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_summary_options_init(growpage_summary_options* options,
                                                           size_t struct_size);

enum { GROWPAGE_ROPE_HALF_SPLIT = 0, GROWPAGE_ROPE_INTERLEAVED = 1 };

/* The engine's rotary embedding. Give inv_freq or both tables (tables win), in the backend's
 * memory, borrowed as long as its user lives. rotary_dim 0 = no rotation. */
typedef struct growpage_rope {
  size_t struct_size;
  int32_t rotary_dim;     /* even, 0 … head_dim */
  int32_t pairing;        /* GROWPAGE_ROPE_* */
  const float* inv_freq;  /* [rotary_dim / 2] */
  const float* cos_table; /* [max_position, rotary_dim / 2] */
  const float* sin_table; /* [max_position, rotary_dim / 2] */
  int64_t max_position;
  float attention_scale; /* 1, multiplies cos and sin */
  int32_t reserved;
} growpage_rope;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_rope_init(growpage_rope* rope, size_t struct_size);

enum { GROWPAGE_METRIC_TOP_P = 0, GROWPAGE_METRIC_ENTROPY = 1 };
enum { GROWPAGE_GROUP_MEAN = 0, GROWPAGE_GROUP_PER_QUERY_HEAD = 1 };

/* How attention demand is measured (paper, eq. 4 and 5). */
typedef struct growpage_demand_options {
  size_t struct_size;
  float p;        /* 0.99, mass of the working set, 0 < p ≤ 1 */
  int32_t metric; /* GROWPAGE_METRIC_* */
  int32_t group;  /* GROWPAGE_GROUP_* */
  int32_t reserved;
  const uint8_t* layer_mask; /* [layer] nonzero = counts, or null = all; borrowed with its user */
} growpage_demand_options;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_demand_options_init(growpage_demand_options* options,
                                                          size_t struct_size);

enum { GROWPAGE_SCORE_SUMMARIES = 0, GROWPAGE_SCORE_WINDOW = 1 };
enum { GROWPAGE_FILL_HOLES = 0, GROWPAGE_IN_ORDER = 1 };
enum { GROWPAGE_SHARED_KEEP = 0, GROWPAGE_SHARED_COPY = 1 };

/* Which tokens survive a compaction (paper, section 3.4; Zipage, section 3). */
typedef struct growpage_retention_options {
  size_t struct_size;
  int32_t score;                /* GROWPAGE_SCORE_* */
  int32_t strategy;             /* GROWPAGE_FILL_HOLES or GROWPAGE_IN_ORDER */
  int32_t shared;               /* GROWPAGE_SHARED_* */
  int32_t recent;               /* 16, last slots always kept */
  int32_t local_per_256;        /* 64, best of every page always kept, scaled by page_size / 256 */
  int32_t sinks;                /* 0, first tokens always kept */
  int32_t protect_prompt;       /* 0 or 1 */
  int32_t window;               /* 16, queries of window scoring */
  int32_t max_pool;             /* 0 = off, else odd */
  float global_decay;           /* 0 = off */
  float redundancy_weight;      /* 0 = off */
  float redundancy_temperature; /* 0.4 */
} growpage_retention_options;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_retention_options_init(growpage_retention_options* options,
                                                             size_t struct_size);

/* ==== 3  Cache ==================================================================================
 *
 * Who owns which page: pool, prefix index, block tables. With GROWPAGE_BACKEND_NONE that is all,
 * for engines with kernels of their own. With GROWPAGE_BACKEND_CPU or GROWPAGE_BACKEND_CUDA the
 * cache also has KV memory, query summaries and kernels, and the calls of section 3.4 work;
 * without, they answer GROWPAGE_UNSUPPORTED, as GROWPAGE_BACKEND_CUDA does in a build without CUDA.
 * CUDA works on the device that is current for the calling thread.
 */
typedef struct growpage_cache growpage_cache;

enum { GROWPAGE_BACKEND_NONE = 0, GROWPAGE_BACKEND_CPU = 1, GROWPAGE_BACKEND_CUDA = 2 };
enum { GROWPAGE_LAYOUT_HND = 0, GROWPAGE_LAYOUT_NHD = 1 };
enum { GROWPAGE_ISA_AUTOMATIC = 0, GROWPAGE_ISA_SCALAR = 1, GROWPAGE_ISA_SIMD = 2 };

typedef struct growpage_cache_options {
  size_t struct_size;
  int32_t backend; /* GROWPAGE_BACKEND_*, default NONE */
  /* The model; with BACKEND_NONE only page_size counts. */
  int32_t layers;
  int32_t query_heads; /* a multiple of kv_heads; query head h reads KV head h / (Hq / Hkv) */
  int32_t kv_heads;
  int32_t head_dim;
  int32_t value_dim;              /* 0 = head_dim */
  int32_t page_size;              /* 256, tokens a page: a power of two ≥ 16 */
  int32_t max_sequences;          /* 1024, alive at once, swapped ones included */
  int64_t pages;                  /* physical pages, 1 … 2^31 − 1 */
  int64_t host_pages;             /* 0 = no swap */
  int64_t event_capacity;         /* 0 = no KV events recorded */
  int32_t max_pages_per_sequence; /* 1024 */
  int32_t max_fences;             /* 256, compactions and swaps in flight */
  int32_t prefix_caching;         /* 1 */

  /* From here on: with a backend only. */
  int32_t dtype;  /* GROWPAGE_BF16, of library-owned KV memory */
  int32_t layout; /* GROWPAGE_LAYOUT_*, of library-owned KV memory */
  int32_t isa;    /* CPU: GROWPAGE_ISA_*; SCALAR gives equal bits on every machine */
  /* The engine's KV memory [layer, page, kv_head, token, dim], any strides with rows contiguous,
   * borrowed until the cache is destroyed. Null k = the library allocates. Null v with a k, or a v
   * with k's data = V is a view of K's rows. */
  const growpage_tensor* k;
  const growpage_tensor* v;
  const growpage_summary_options* summary;     /* null = defaults */
  const growpage_rope* rope;                   /* null = no rotation; tables stay borrowed */
  const growpage_demand_options* demand;       /* null = defaults; the mask stays borrowed */
  const growpage_retention_options* retention; /* null = defaults; usually the policy's */
  const growpage_executor* executor;           /* CPU: null = calling thread; context borrowed */
  float softmax_scale;                         /* 0 = 1 / sqrt(head_dim) */
  int32_t score_buffers;                       /* 8, scores kept from demand to compaction */
} growpage_cache_options;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_options_init(growpage_cache_options* options,
                                                         size_t struct_size);

/* A new cache; destroy it. `hooks` may be null. GROWPAGE_OUT_OF_MEMORY when the host or the backend
 * has no memory left. [free | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_create(const growpage_cache_options* options,
                                                   const growpage_hooks* hooks,
                                                   growpage_cache** cache);
/* Null is fine. GROWPAGE_PROTOCOL_ERROR while a scheduler uses it.
 * [exclusive | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_destroy(growpage_cache* cache);

typedef struct growpage_cache_info {
  size_t struct_size;
  const char* backend_name; /* "none", "cpu-scalar", …; static */
  int32_t backend;
  int32_t page_size;
  int64_t pages; /* free + cached + referenced + in_flight, always */
  int64_t free_pages;
  int64_t cached_pages;     /* published, read by nobody, evictable */
  int64_t referenced_pages; /* in at least one block table */
  int64_t in_flight_pages;  /* in no table, but a fence guards them */
  int64_t host_pages;
  int64_t free_host_pages;
  int64_t sequences;     /* alive */
  int64_t evicted_pages; /* cached pages taken for reuse, so far */
  int64_t copied_pages;  /* copy-on-write, so far */
  int64_t k_bytes_read;  /* by demand and score passes, so far; 0 without a backend */
} growpage_cache_info;
/* [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_get_info(const growpage_cache* cache,
                                                     growpage_cache_info* info);

/* ---- 3.1  Sequences. All calls are O(pages concerned) and allocate nothing. Sequences that a
 * scheduler made are its own: calls that would change one answer GROWPAGE_INVALID_ARGUMENT. ------
 */

/* One page of all layers, K and V, to another page of the same cache. source < 0: no copy. */
typedef struct growpage_page_copy {
  int32_t source;
  int32_t target;
} growpage_page_copy;

/* A new sequence that begins with the longest cached prefix of `tokens` [count], at most count − 1
 * of them; `matched` (null = not wanted) of these count as appended and computed. `tokens` may be
 * null with count 0. GROWPAGE_OUT_OF_SEQUENCES. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_admit(growpage_cache* cache, const int32_t* tokens,
                                                  size_t count, const growpage_key* key,
                                                  uint64_t* sequence, int64_t* matched);
/* Tokens that admit would match now, without taking anything.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_match_length(const growpage_cache* cache,
                                                         const int32_t* tokens, size_t count,
                                                         const growpage_key* key, int64_t* matched);
/* One more page at the end of the table: growth. GROWPAGE_OUT_OF_PAGES; invalid at
 * max_pages_per_sequence. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_grow(growpage_cache* cache, uint64_t sequence);
/* Pages for `slots` more slots, all or none. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_reserve(growpage_cache* cache, uint64_t sequence,
                                                    int64_t slots);
/* Takes the next `count` slots for `tokens` [count] (null: unknown; pages from here on are not
 * published). `copy` (not null) receives a page copy to run before anything else touches either
 * page, or source −1. GROWPAGE_AT_CAPACITY when the pages are too few, GROWPAGE_OUT_OF_PAGES when
 * the copy's page is not to be had. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_append(growpage_cache* cache, uint64_t sequence,
                                                   int64_t count, const int32_t* tokens,
                                                   growpage_page_copy* copy);
/* One token, tokens[i] (null: unknown), to each of `sequences` [batch]: a decode step of an engine
 * with a scheduler of its own. `copies` [batch] receives *copy_count page copies to run first, in
 * order. Stops at the first sequence that cannot take its token and answers why: the *done before
 * it have theirs. [exclusive | partly done | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_append_batch(growpage_cache* cache,
                                                         const uint64_t* sequences,
                                                         const int32_t* tokens, size_t batch,
                                                         growpage_page_copy* copies,
                                                         size_t* copy_count, size_t* done);
/* K/V of the first `slots` slots exists now: full pages become matchable.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_mark_computed(growpage_cache* cache, uint64_t sequence,
                                                          int32_t slots);
/* A second sequence with the same content, pages shared until written.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_fork(growpage_cache* cache, uint64_t sequence,
                                                 uint64_t* fork);
/* Forgets the tokens from `length` on (speculative rollback). GROWPAGE_BEHIND_COMPACTION below the
 * length at the last compaction. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_truncate(growpage_cache* cache, uint64_t sequence,
                                                     int64_t length);
/* The sequence is gone; its pages return to the pool, to the prefix cache, or wait for a fence.
 * Allowed while busy or swapped. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_release(growpage_cache* cache, uint64_t sequence);

typedef struct growpage_sequence {
  size_t struct_size;
  const int32_t* pages; /* [page_count] block table (host pages while swapped); valid until the next
                           exclusive call */
  size_t page_count;
  int64_t length;   /* tokens appended: the position of the next token */
  int32_t slots;    /* used slots; equals length until the first compaction */
  int32_t computed; /* slots whose K/V exists */
  int32_t compactions;
  int32_t busy;          /* 1: under a fence; do not read, write or decode it */
  int32_t swapped;       /* 1: its pages are in host memory */
  int32_t private_pages; /* pages that no other table holds */
} growpage_sequence;
/* [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_get_sequence(const growpage_cache* cache,
                                                         uint64_t sequence,
                                                         growpage_sequence* view);
/* Physical slot (page · page_size + offset) of logical slot `slot` < pages · page_size.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_physical_slot(const growpage_cache* cache,
                                                          uint64_t sequence, int32_t slot,
                                                          int64_t* physical);
/* Withdraws every unreferenced cached page and forgets published ones.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_clear_prefix_cache(growpage_cache* cache);
/* Checks every rule of the bookkeeping, O(everything); GROWPAGE_PROTOCOL_ERROR names the first one
 * broken. For debugging. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_check_invariants(const growpage_cache* cache);

/* ---- 3.2  Batch tables, as attention kernels want them, into the caller's memory. `sequences`
 * [batch] in batch order. GROWPAGE_STALE_ID, GROWPAGE_BUSY. --------------------------------------
 */

/* FlashAttention-like: whole table rows, padded. `block_table` [batch, *stride] of `size` elements;
 * `cache_seqlens` [batch] used slots, or null. With block_table null only the smallest stride is
 * written to *stride. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_padded_tables(const growpage_cache* cache,
                                                          const uint64_t* sequences, size_t batch,
                                                          int64_t* stride, int32_t* block_table,
                                                          size_t size, int32_t pad,
                                                          int32_t* cache_seqlens);
/* FlashInfer-like: compressed rows, pages with used slots only. `indptr` [batch + 1], `indices`
 * [*count] of `size` elements, `last_page_len` [batch]. With indices null only the size is written
 * to *count. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_compressed_tables(
    const growpage_cache* cache, const uint64_t* sequences, size_t batch, int32_t* indptr,
    int32_t* indices, size_t size, size_t* count, int32_t* last_page_len);
/* Physical slots and true positions of the last counts[i] tokens of each sequence, sequence after
 * sequence, oldest first: `slot_mapping` [Σ counts] and `positions` [Σ counts] of `size` elements,
 * either null = not wanted; both null: only Σ counts is written to *total (null = not wanted).
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_token_tables(const growpage_cache* cache,
                                                         const uint64_t* sequences, size_t batch,
                                                         const int32_t* counts,
                                                         int64_t* slot_mapping, int64_t* positions,
                                                         size_t size, size_t* total);

/* ---- 3.3  Compaction, swap, fences: bookkeeping. ------------------------------------------------
 */

typedef struct growpage_ticket {
  uint64_t sequence;
  uint64_t fence;
  int32_t victims;
  int32_t strategy;
} growpage_ticket;

enum { GROWPAGE_PAGE_PRIVATE = 1, GROWPAGE_PAGE_PROTECTED = 2 };

/* Which pages a compaction empties: logical page indices, ascending; −1 = none. */
typedef struct growpage_compaction_plan {
  int32_t strategy;
  int32_t victims; /* 1 = Compress & Hold, 2 = Shrink */
  int32_t victim[2];
} growpage_compaction_plan;

/* Starts freeing `victims` (1 or 2) pages of a sequence whose pages are full and computed; it is
 * busy until the ticket's fence completes. `copies` [capacity] receives *count copies to run first;
 * with GROWPAGE_SHARED_COPY capacity must be at least the sequence's pages, else 0 will do (copies
 * null). GROWPAGE_AT_CAPACITY when too few pages are private, GROWPAGE_OUT_OF_PAGES,
 * GROWPAGE_OUT_OF_FENCES. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_begin_compaction(
    growpage_cache* cache, uint64_t sequence, int32_t victims, int32_t strategy, int32_t shared,
    growpage_page_copy* copies, size_t capacity, size_t* count, growpage_ticket* ticket);
/* Marks [pages] for planning and selection: GROWPAGE_PAGE_* bits of each page of the table.
 * `size` ≥ the sequence's pages. Allowed while busy. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_page_marks(const growpage_cache* cache,
                                                       uint64_t sequence, int32_t protected_slots,
                                                       uint8_t* marks, size_t size);
/* Carries a plan out in the block table, for engines that move the rows themselves. `page_kept`
 * [pages] rows kept per page, or null with pages 0; `rows_per_page` = layers · kv_heads ·
 * page_size. GROWPAGE_PROTOCOL_ERROR when the ticket is not of a begun compaction. [exclusive |
 * kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_apply_compaction(growpage_cache* cache,
                                                             const growpage_ticket* ticket,
                                                             const growpage_compaction_plan* plan,
                                                             const int32_t* page_kept, size_t pages,
                                                             int32_t rows_per_page);
/* Gives a compaction of the caller's own up before it was applied; completes its fence.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_cancel_compaction(growpage_cache* cache,
                                                              const growpage_ticket* ticket);

/* One page of all layers, K and V, between the cache and host memory. */
typedef struct growpage_page_transfer {
  int32_t device;
  int32_t host;
} growpage_page_transfer;

/* Gives the sequence's device pages up for host pages; `transfers` [capacity], capacity ≥ its
 * pages, receives the *count copies to run. Busy until the fence, then swapped.
 * GROWPAGE_OUT_OF_HOST_PAGES, GROWPAGE_OUT_OF_FENCES. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_swap_out(growpage_cache* cache, uint64_t sequence,
                                                     growpage_page_transfer* transfers,
                                                     size_t capacity, size_t* count,
                                                     uint64_t* fence);
/* The way back, all or none. GROWPAGE_OUT_OF_PAGES, GROWPAGE_OUT_OF_FENCES.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_swap_in(growpage_cache* cache, uint64_t sequence,
                                                    growpage_page_transfer* transfers,
                                                    size_t capacity, size_t* count,
                                                    uint64_t* fence);
/* The device work behind a fence of the caller's own (begin_compaction, swap, guard) is done.
 * Fences of a plan are reported to growpage_scheduler_complete instead. [exclusive | kept | host]
 * since 0.1 */
GROWPAGE_API growpage_status growpage_cache_complete_fence(growpage_cache* cache, uint64_t fence);
/* A fence of the engine's own over a sequence's pages (a transfer to another node, say). The
 * sequence may go on appending; guarded rows are neither overwritten nor moved.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_guard(growpage_cache* cache, uint64_t sequence,
                                                  uint64_t* fence);

/* ---- 3.4  Kernels over the cache's memory. -----------------------------------------------------
 *
 * With CUDA these are device memory, and what they hold is not checked: layer_data and what it
 * points to, RoPE tables, queries, k, v, q, out, slot_mapping, block_table, kv_lengths. Everything
 * else is host memory, read before the call returns. A device that refuses: GROWPAGE_DEVICE_ERROR.
 * measure_demand, compact and attention share a workspace: keep them on one stream, or order their
 * streams by events.
 */

typedef struct growpage_summary_entry {
  int32_t slot;  /* row of the summary state */
  int32_t first; /* 1: first decode step of this slot, the old contents are ignored */
} growpage_summary_entry;

/* Σ and count over (layer, KV head): ranks add theirs, then the ratio is taken. */
typedef struct growpage_demand {
  double short_sum;
  double long_sum;
  int64_t count; /* 0 when there was no candidate */
} growpage_demand;
/* Δ = mean short − mean long (paper, eq. 5): above 0 attention is widening. 0 for null or count 0.
 * [free | host] since 0.1 */
GROWPAGE_API double growpage_demand_delta(const growpage_demand* demand);

/* K [layer, page, kv_head, token, head_dim] and V [.., value_dim] of the cache: its own memory or
 * the engine's. Either null = not wanted. The memory lives as long as the cache.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_get_kv(const growpage_cache* cache, growpage_tensor* k,
                                                   growpage_tensor* v);
/* Updates the summaries of `entries` [count] for layers [first_layer, first_layer + layers) with
 * `queries` [layers, count, query_heads, head_dim], after q-norm and before RoPE.
 * [exclusive | kept | enqueues] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_update_summaries(
    growpage_cache* cache, const growpage_summary_entry* entries, size_t count,
    const growpage_tensor* queries, int32_t first_layer, int32_t layers, void* stream);
/* Adds the demand of a sequence to `demand` (clear it first). `position` of the latest query.
 * [exclusive | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_measure_demand(growpage_cache* cache, uint64_t sequence,
                                                           int32_t summary_slot, int64_t position,
                                                           growpage_demand* demand, void* stream);
/* Runs a begun compaction: scores, selection, plan, row moves, block table. Complete the ticket's
 * fence when the stream has passed this point. GROWPAGE_AT_CAPACITY when what must be kept does not
 * fit: then the compaction is cancelled, its fence complete.
 * [exclusive | kept but for that | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_compact(growpage_cache* cache,
                                                    const growpage_ticket* ticket,
                                                    int32_t summary_slot, int64_t position,
                                                    int32_t protected_slots, void* stream);
/* `copies` [count], in order. [exclusive | kept | enqueues] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_run_copies(growpage_cache* cache,
                                                       const growpage_page_copy* copies,
                                                       size_t count, void* stream);
/* Pages to host memory, and with them the summary row of `summary_slot` (−1 = none).
 * [exclusive | kept | enqueues] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_run_swap_out(growpage_cache* cache, uint64_t sequence,
                                                         int32_t summary_slot,
                                                         const growpage_page_transfer* transfers,
                                                         size_t count, void* stream);
/* The way back; the summary row may be another one. [exclusive | kept | enqueues] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_run_swap_in(growpage_cache* cache, uint64_t sequence,
                                                        int32_t summary_slot,
                                                        const growpage_page_transfer* transfers,
                                                        size_t count, void* stream);
/* Writes `k` [tokens, kv_heads, head_dim] and `v` [tokens, kv_heads, value_dim], packed, RoPE
 * applied, in the cache's dtype, to the physical slots `slot_mapping` [tokens] (negative = skip).
 * `v` is null when V is a view of K. [exclusive | kept | enqueues] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_append_kv(growpage_cache* cache, int32_t layer,
                                                      const int64_t* slot_mapping, size_t tokens,
                                                      const void* k, const void* v, void* stream);
/* Reference attention, for tests and small engines: `q` [batch, query_heads, head_dim] f32, RoPE
 * applied; `out` [batch, query_heads, value_dim] f32; `block_table` [batch, stride]; `kv_lengths`
 * [batch] used slots. [exclusive | kept | enqueues] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_attention(growpage_cache* cache, int32_t layer,
                                                      size_t batch, const int32_t* block_table,
                                                      int64_t stride, const int32_t* kv_lengths,
                                                      const float* q, float* out, void* stream);

/* ---- 3.5  KV events, for prefix-aware routers. --------------------------------------------------
 */

typedef struct growpage_hash {
  uint64_t low;
  uint64_t high;
} growpage_hash;

enum { GROWPAGE_EVENT_STORED = 0, GROWPAGE_EVENT_REMOVED = 1, GROWPAGE_EVENT_CLEARED = 2 };

typedef struct growpage_kv_event {
  int32_t kind; /* GROWPAGE_EVENT_* */
  int32_t page;
  growpage_hash hash;
  growpage_hash parent;
  int32_t tokens;
  int32_t reserved;
} growpage_kv_event;
/* Takes the oldest `*count` ≤ capacity events into `events` [capacity]. With events null nothing is
 * taken and *count is how many wait. `dropped` (null = not wanted): lost so far because nobody
 * drained in time. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_cache_drain_events(growpage_cache* cache,
                                                         growpage_kv_event* events, size_t capacity,
                                                         size_t* count, int64_t* dropped);

/* ==== 4  Policy =================================================================================
 *
 * What is decided at a capacity boundary: "full", "fixed", "zipage", "growpage", "random",
 * "inverse", "shrink", or the engine's own call-back. A policy handle is a set of parameters;
 * creating a scheduler copies it, so it may be destroyed or changed afterwards.
 */
typedef struct growpage_policy growpage_policy;

enum { GROWPAGE_GROW = 0, GROWPAGE_COMPACT = 1, GROWPAGE_SHRINK = 2 };

typedef struct growpage_boundary {
  size_t struct_size;
  uint64_t request;  /* the engine's tag */
  int64_t boundary;  /* decisions this request had before, from 0 */
  int64_t length;    /* true length in tokens */
  int32_t pages;     /* pages held, ≥ 0 */
  int32_t page_size; /* ≥ 1 */
  int32_t measured;  /* 1: `demand` was measured */
  int32_t reserved;
  growpage_demand demand;
  double pressure; /* 1 − allocatable pages / total pages */
} growpage_boundary;

/* Answers GROWPAGE_GROW, GROWPAGE_COMPACT or GROWPAGE_SHRINK; anything else counts as GROW and is
 * logged. Must be deterministic in `boundary`, which is valid for the call. */
typedef int32_t (*growpage_decide_callback)(void* context, const growpage_boundary* boundary);

/* A built-in policy with its defaults; destroy it. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_create(const char* name, const growpage_hooks* hooks,
                                                    growpage_policy** policy);
/* "user": the engine's own. `context` is borrowed until this handle and every scheduler made with
 * it are destroyed. `needs_demand` 0 or 1. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_create_user(growpage_decide_callback decide,
                                                         void* context, int32_t needs_demand,
                                                         const growpage_hooks* hooks,
                                                         growpage_policy** policy);
/* Null is fine. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_destroy(growpage_policy* policy);

enum { GROWPAGE_PARAMETER_DOUBLE = 0, GROWPAGE_PARAMETER_INT = 1 };
typedef struct growpage_parameter {
  size_t struct_size;
  const char* name; /* "threshold"; static */
  int32_t kind;     /* GROWPAGE_PARAMETER_* */
  int32_t reserved;
} growpage_parameter;
/* Parameters of this policy, by index from 0; GROWPAGE_INVALID_ARGUMENT past the last. Those of its
 * retention are "retention.recent", …, named like the fields of growpage_retention_options.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_get_parameter(const growpage_policy* policy,
                                                           size_t index,
                                                           growpage_parameter* parameter);
/* By name; an unknown name, the other kind, or a value that does not fit the parameter's type is
 * refused. Ranges are checked by growpage_policy_validate and by growpage_scheduler_create. A seed
 * is passed as the int64 with the same bits. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_set_double(growpage_policy* policy, const char* name,
                                                        double value);
GROWPAGE_API growpage_status growpage_policy_set_int(growpage_policy* policy, const char* name,
                                                     int64_t value);
/* [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_get_double(const growpage_policy* policy,
                                                        const char* name, double* value);
GROWPAGE_API growpage_status growpage_policy_get_int(const growpage_policy* policy,
                                                     const char* name, int64_t* value);

/* All parameters but retention, typed. A policy uses the fields that are its own (see their
 * comments) and leaves the others alone: not read by set, not written by get. */
typedef struct growpage_policy_options {
  size_t struct_size;
  double threshold;           /* growpage: τ */
  double low;                 /* shrink: ≤ 0 */
  double compact_probability; /* random: 0 … 1 */
  uint64_t seed;              /* random */
  int32_t min_tokens;         /* shrink */
  int32_t budget_tokens;      /* fixed */
  int32_t pages;              /* zipage: N */
  int32_t initial_pages;      /* 12; growpage, random, inverse, shrink, user */
  int32_t max_pages;          /* growpage, random, inverse, shrink, user; 0 = no bound */
  int32_t reserved;
} growpage_policy_options;
/* `options` as it is for all policies by default. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_options_init(growpage_policy_options* options,
                                                          size_t struct_size);
/* [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_set_options(growpage_policy* policy,
                                                         const growpage_policy_options* options);
/* [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_get_options(const growpage_policy* policy,
                                                         growpage_policy_options* options);
/* Retention of the policy. "full" has none: set answers GROWPAGE_UNSUPPORTED.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status
growpage_policy_set_retention(growpage_policy* policy, const growpage_retention_options* options);
/* Give the result to growpage_cache_options. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_get_retention(const growpage_policy* policy,
                                                           growpage_retention_options* options);

typedef struct growpage_policy_info {
  size_t struct_size;
  const char* name;      /* static */
  int32_t needs_demand;  /* 1: Δ is measured before it decides */
  int32_t may_compact;   /* 0: a full pool preempts instead */
  int32_t initial_pages; /* a request grows freely to these, or its prompt plus one page */
  int32_t max_pages;     /* 0 = no bound */
} growpage_policy_info;
/* [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_get_info(const growpage_policy* policy,
                                                      int32_t page_size,
                                                      growpage_policy_info* info);
/* GROWPAGE_OK, or which parameter is out of range for this page size.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_validate(const growpage_policy* policy,
                                                      int32_t page_size);
/* The decision itself, for engines with a scheduler of their own: GROWPAGE_GROW, GROWPAGE_COMPACT
 * or GROWPAGE_SHRINK. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_policy_decide(growpage_policy* policy,
                                                    const growpage_boundary* boundary,
                                                    int32_t* decision);

/* ==== 5  Scheduler ==============================================================================
 *
 * Continuous batching over a cache under a policy. Pure host logic: it plans, the engine runs.
 * schedule and complete alternate; submit and abort may come between any two calls. In the steady
 * state nothing is allocated and no lock is taken.
 */
typedef struct growpage_scheduler growpage_scheduler;

enum { GROWPAGE_PREEMPT_RECOMPUTE = 0, GROWPAGE_PREEMPT_SWAP = 1 };

typedef struct growpage_scheduler_options {
  size_t struct_size;
  int64_t max_batched_tokens;   /* 8192, prefill + decode tokens of one forward pass */
  int64_t max_prefill_chunk;    /* 0 = the whole budget */
  int32_t max_running;          /* 512, requests in the batch */
  int32_t summary_slots;        /* 512, = growpage_summary_options.slots of the cache */
  int32_t preemption;           /* GROWPAGE_PREEMPT_*; SWAP needs host_pages */
  int32_t early_slots;          /* 0, demand is measured when at most this many slots remain */
  int64_t max_compacting_pages; /* 600, of requests under compaction at once */
  int64_t aging_steps;          /* 1024, a priority level gained; 0 = off */
  int64_t decision_capacity;    /* 0, decision-log entries kept */
} growpage_scheduler_options;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_options_init(growpage_scheduler_options* options,
                                                             size_t struct_size);

/* A scheduler over `cache`, which stays alive until it is destroyed, under a copy of `policy`.
 * `options` and `hooks` may be null. [exclusive (cache) | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_create(growpage_cache* cache,
                                                       const growpage_policy* policy,
                                                       const growpage_scheduler_options* options,
                                                       const growpage_hooks* hooks,
                                                       growpage_scheduler** scheduler);
/* Releases the sequences of its requests. Null is fine. Fences of its plans must have been
 * completed by the device. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_destroy(growpage_scheduler* scheduler);

typedef struct growpage_request {
  size_t struct_size;
  uint64_t tag;           /* the engine's own name; in plans, logs and policy seeds */
  const int32_t* prompt;  /* [prompt_tokens], copied */
  size_t prompt_tokens;   /* ≥ 1 */
  int64_t max_new_tokens; /* ≥ 1 */
  int32_t priority;       /* lower runs earlier */
  int32_t reserved;
  const growpage_key* key; /* null = none; copied */
} growpage_request;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_request_init(growpage_request* request, size_t struct_size);

/* Queues a request. GROWPAGE_REQUEST_TOO_LARGE when it could never run to its end even alone.
 * Allocates. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_submit(growpage_scheduler* scheduler,
                                                       const growpage_request* request,
                                                       uint64_t* id);
/* Ends a request in any state; its pages and slot return. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_abort(growpage_scheduler* scheduler, uint64_t id);

/* Rows of a plan. summary: row of the query-summary state, −1 = none. */
typedef struct growpage_swap {
  uint64_t request;
  uint64_t sequence;
  uint64_t fence;
  int32_t summary;
  int32_t reserved;
  size_t first_transfer; /* its page copies in transfers_out / transfers_in */
  size_t transfers;
} growpage_swap;

typedef struct growpage_compaction {
  uint64_t request;
  growpage_ticket ticket;
  uint64_t tag;
  int32_t summary;
  int32_t reserved;
  int64_t position;
  int32_t protected_slots;
  int32_t reserved2;
} growpage_compaction;

typedef struct growpage_prefill {
  uint64_t request;
  uint64_t sequence;
  uint64_t tag;
  int64_t first_position; /* of the chunk in the request's text */
  int32_t first_slot;     /* logical slot of the first token */
  int32_t tokens;
  uint8_t last; /* 1: sample a token from the chunk's last position */
  uint8_t reserved[3];
  int32_t summary; /* ≥ 0: start the summaries with the query of the chunk's LAST token */
} growpage_prefill;

typedef struct growpage_decode {
  uint64_t request;
  uint64_t sequence;
  uint64_t tag;
  int32_t token; /* input token: the last one generated */
  int32_t reserved;
  int64_t position;  /* true position, for RoPE: never the slot */
  int64_t slot;      /* physical slot for its K/V */
  int32_t kv_length; /* used slots with this token */
  int32_t summary;
  uint8_t summary_first; /* 1: first decode step of the summary row */
  uint8_t reserved2[7];
} growpage_decode;

typedef struct growpage_demand_request {
  uint64_t request;
  uint64_t sequence;
  uint64_t tag;
  int32_t summary;
  int32_t reserved;
  int64_t position;
} growpage_demand_request;

/* One step, in the order to carry it out: 1 swap_outs, 2 swap_ins, 3 copies, 4 compactions
 * (growpage_scheduler_run_before_forward does these), 5 one forward pass over prefills and decodes
 * that updates the summaries, 6 demand (growpage_scheduler_run_after_forward), 7 complete. Each
 * array: pointer, count, stride in bytes. */
typedef struct growpage_plan {
  size_t struct_size;
  int64_t step;
  int64_t batched_tokens; /* prefill + decode tokens of the forward pass */
  const growpage_swap* swap_outs;
  size_t swap_out_count;
  size_t swap_out_stride;
  const growpage_swap* swap_ins;
  size_t swap_in_count;
  size_t swap_in_stride;
  const growpage_page_transfer* transfers_out;
  size_t transfer_out_count;
  size_t transfer_out_stride;
  const growpage_page_transfer* transfers_in;
  size_t transfer_in_count;
  size_t transfer_in_stride;
  const growpage_page_copy* copies;
  size_t copy_count;
  size_t copy_stride;
  const growpage_compaction* compactions;
  size_t compaction_count;
  size_t compaction_stride;
  const growpage_prefill* prefills;
  size_t prefill_count;
  size_t prefill_stride;
  const growpage_decode* decodes;
  size_t decode_count;
  size_t decode_stride;
  const growpage_demand_request* demand;
  size_t demand_count;
  size_t demand_stride;
  const uint64_t* preempted; /* request ids, for the engine's own bookkeeping */
  size_t preempted_count;
  size_t preempted_stride;
} growpage_plan;

/* Decides the next step and writes views of it to `plan` (struct_size set), zero-copy, valid until
 * the next schedule. GROWPAGE_PROTOCOL_ERROR when the last plan was not completed.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_schedule(growpage_scheduler* scheduler,
                                                         growpage_plan* plan);
/* Runs swaps, copies and compactions of the open plan with the cache's backend, once a plan. The
 * fences [count] of that work are valid until the next schedule; report them to complete once
 * `stream` has passed this point (CPU: at once). Stops at the first failing item, with the fences
 * so far written. GROWPAGE_UNSUPPORTED without a backend. [exclusive | partly done | synchronises]
 * since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_run_before_forward(growpage_scheduler* scheduler,
                                                                   void* stream,
                                                                   const uint64_t** fences,
                                                                   size_t* count);

typedef struct growpage_measured_demand {
  uint64_t request;
  growpage_demand demand;
} growpage_measured_demand;

/* Measures the demand the open plan asks for, after the forward pass has updated the summaries,
 * once a plan. `demand` [count] is valid until the next schedule. [exclusive | partly done |
 * synchronises] since 0.1 */
GROWPAGE_API growpage_status
growpage_scheduler_run_after_forward(growpage_scheduler* scheduler, void* stream,
                                     const growpage_measured_demand** demand, size_t* count);

typedef struct growpage_sampled_token {
  uint64_t request;
  int32_t token;
  uint8_t stop; /* 1: end of text, the request finishes with this token */
  uint8_t reserved[3];
} growpage_sampled_token;

typedef struct growpage_step_result {
  size_t struct_size;
  const growpage_sampled_token* tokens; /* one per decode and per last prefill chunk, any order */
  size_t token_count;
  const growpage_measured_demand* demand; /* one per demand entry of the plan, any order */
  size_t demand_count;
  const uint64_t* fences; /* compactions and swaps finished since the last complete */
  size_t fence_count;
  const uint64_t* failed; /* planned requests the engine could not run: aborted, no token */
  size_t failed_count;
} growpage_step_result;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_step_result_init(growpage_step_result* result,
                                                       size_t struct_size);

/* Takes the results of the open plan. GROWPAGE_PROTOCOL_ERROR without one;
 * GROWPAGE_INVALID_ARGUMENT when a token or demand is missing, doubled or foreign;
 * GROWPAGE_STALE_ID for a fence that is not open. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_complete(growpage_scheduler* scheduler,
                                                         const growpage_step_result* result);

typedef struct growpage_finished {
  uint64_t request;
  uint64_t tag;
  int64_t generated;
  uint8_t aborted;
  uint8_t reserved[7];
} growpage_finished;
/* Requests that ended in the last complete or by abort since; valid until the next of either.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_finished(const growpage_scheduler* scheduler,
                                                         const growpage_finished** finished,
                                                         size_t* count, size_t* stride);

enum {
  GROWPAGE_WAITING = 0, /* not admitted yet, or preempted and to be recomputed */
  GROWPAGE_PREFILLING = 1,
  GROWPAGE_DECODING = 2,
  GROWPAGE_COMPACTING = 3, /* out of the batch until its fence is done */
  GROWPAGE_SWAPPING_OUT = 4,
  GROWPAGE_SWAPPED = 5,
  GROWPAGE_SWAPPING_IN = 6
};
/* GROWPAGE_WAITING, …; GROWPAGE_STALE_ID when it is gone. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_state(const growpage_scheduler* scheduler,
                                                      uint64_t id, int32_t* state);
/* Prompt and generated tokens so far [count]; valid until the next complete or submit.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_text(const growpage_scheduler* scheduler,
                                                     uint64_t id, const int32_t** tokens,
                                                     size_t* count);

/* What cache and scheduler have done since construction: plain sums. */
typedef struct growpage_stats {
  size_t struct_size;
  int64_t idle;    /* 1: no request waiting, running or in flight */
  int64_t waiting; /* requests now */
  int64_t running; /* requests now */
  int64_t steps;
  int64_t submitted;
  int64_t refused; /* at submission: can never fit */
  int64_t finished;
  int64_t aborted;
  int64_t prefill_tokens; /* computed, prefix hits not counted */
  int64_t decode_tokens;  /* generated */
  int64_t grow;           /* decisions */
  int64_t compact;
  int64_t shrink;
  int64_t fallback;    /* grow wanted, no page: compacted (counted in compact too) */
  int64_t free_growth; /* pages taken without a decision */
  int64_t preempt;     /* = swap_out + recompute */
  int64_t swap_out;
  int64_t swap_in;
  int64_t recompute;
  int64_t prefix_query_tokens; /* looked up at first admission */
  int64_t prefix_hit_tokens;   /* of these, found */
  int64_t evicted_pages;
  int64_t copied_pages;
  int64_t kv_token_steps; /* Σ over steps of KV tokens held by running requests */
  int64_t running_steps;  /* Σ over steps of running requests */
} growpage_stats;
/* [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_get_stats(const growpage_scheduler* scheduler,
                                                          growpage_stats* stats);
/* Checks requests, slots and pages against the cache, O(everything). For debugging.
 * [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status
growpage_scheduler_check_invariants(const growpage_scheduler* scheduler);

/* ==== 6  Decision log ===========================================================================
 */

enum {
  GROWPAGE_DECISION_GROW = 0,
  GROWPAGE_DECISION_COMPACT = 1,
  GROWPAGE_DECISION_SHRINK = 2,
  GROWPAGE_DECISION_FALLBACK = 3,
  GROWPAGE_DECISION_SWAP_OUT = 4,
  GROWPAGE_DECISION_RECOMPUTE = 5
};

typedef struct growpage_decision {
  uint64_t request;
  uint64_t tag;
  int64_t step;
  int32_t kind; /* GROWPAGE_DECISION_* */
  uint8_t measured;
  uint8_t reserved[3];
  double delta;
  double short_ratio;
  double long_ratio;
  int32_t pages_before;
  int32_t pages_after;
  int64_t length;
  double pressure;
} growpage_decision;

/* Takes the oldest *count ≤ capacity decisions into `decisions` [capacity]. With decisions null
 * nothing is taken and *count is how many wait. `dropped` (null = not wanted): lost so far.
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_scheduler_drain_decisions(growpage_scheduler* scheduler,
                                                                growpage_decision* decisions,
                                                                size_t capacity, size_t* count,
                                                                int64_t* dropped);
/* `decisions` [count] as JSONL, one object a line, no terminating zero, into `text` [capacity].
 * *length is the size of the whole text; with text null only that is written; a text that does not
 * fit is refused. Allocates. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_decisions_to_jsonl(const growpage_decision* decisions,
                                                         size_t count, char* text, size_t capacity,
                                                         size_t* length);
/* XXH3-128 (seed 0) of that JSONL text: equal logs, equal hashes, in every language.
 * [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_decision_log_hash(const growpage_decision* decisions,
                                                        size_t count, growpage_hash* hash);

/* ==== 7  Prefix hashes and prefix index =========================================================
 *
 * For routers and for engines with a page pool of their own.
 */

/* A point in a hash chain: digest of everything up to and including a page, and the identity of
 * that prefix in one index. */
typedef struct growpage_prefix_link {
  growpage_hash hash;
  uint64_t id;
} growpage_prefix_link;

/* Where the chains of `key` begin (salt and LoRA). [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_root(const growpage_key* key,
                                                  growpage_prefix_link* root);
/* The link from which the first page touched by the key's modality hangs.
 * [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_join_modality(const growpage_prefix_link* parent,
                                                           const growpage_key* key,
                                                           growpage_prefix_link* joined);
/* The chained hash of a full page of `tokens` [count]. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_hash_page(const growpage_hash* parent, const int32_t* tokens,
                                                size_t count, growpage_hash* hash);

/* Which pages hold which prefix, and the order in which unreferenced ones are given up. */
typedef struct growpage_prefix_index growpage_prefix_index;

/* For pages 0 … pages − 1 of page_size tokens; destroy it. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_create(int64_t pages, int32_t page_size,
                                                          const growpage_hooks* hooks,
                                                          growpage_prefix_index** index);
/* Null is fine. [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_destroy(growpage_prefix_index* index);
/* A published page with `tokens` [page_size] below `parent`, and its link; page −1 = none, `link`
 * untouched. Compares tokens and parent, not only digests. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_lookup(const growpage_prefix_index* index,
                                                          const growpage_prefix_link* parent,
                                                          const int32_t* tokens, int32_t* page,
                                                          growpage_prefix_link* link);
/* `page`, not published, holds `tokens` [page_size] below `parent` now. *first = 1 when no other
 * page had this hash (a "stored" event is due). [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_publish(
    growpage_prefix_index* index, int32_t page, const growpage_prefix_link* parent,
    const int32_t* tokens, growpage_prefix_link* link, int32_t* first);
/* Forgets a published page. *last = 1 when no other page has its `hash` (a "removed" event is due).
 * [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_withdraw(growpage_prefix_index* index,
                                                            int32_t page, growpage_hash* hash,
                                                            int32_t* last);
/* A published page nobody reads goes to the newest end of the eviction order, or out of it (no-op
 * when it is not there). [exclusive | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_lru_push(growpage_prefix_index* index,
                                                            int32_t page);
GROWPAGE_API growpage_status growpage_prefix_index_lru_remove(growpage_prefix_index* index,
                                                              int32_t page);
/* The page to give up next; −1 = none. [shared | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_prefix_index_lru_oldest(const growpage_prefix_index* index,
                                                              int32_t* page);

/* ==== 8  Kernels on the engine's own memory (CPU) ===============================================
 *
 * For engines that keep their own scheduler, block tables and memory. Nothing is allocated: the
 * caller gives a workspace of growpage_workspace_size bytes.
 */

/* The model, the KV memory and the request a kernel works on. */
typedef struct growpage_kernel {
  size_t struct_size;
  int32_t layers;
  int32_t query_heads;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t value_dim; /* 0 = head_dim */
  int32_t page_size;
  int32_t isa;                /* GROWPAGE_ISA_* */
  int32_t slots;              /* used slots of the request, ≥ 1 */
  const int32_t* block_table; /* [pages] physical pages */
  size_t pages;               /* ≥ ceil(slots / page_size) */
  const growpage_tensor* k;   /* [layer, page, kv_head, token, head_dim] */
  const growpage_tensor* v;   /* [layer, page, kv_head, token, value_dim]; null = a view of K */
  const growpage_executor* executor; /* null = calling thread */
  void* workspace;                   /* not needed by growpage_compact */
  size_t workspace_bytes;
} growpage_kernel;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_kernel_init(growpage_kernel* kernel, size_t struct_size);
/* Bytes of workspace for requests of up to `max_slots` slots; of `kernel` the shape, isa and
 * executor count. One workspace serves one call at a time. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_workspace_size(const growpage_kernel* kernel,
                                                     int32_t max_slots, size_t* bytes);

/* Query summaries in the engine's memory. */
typedef struct growpage_summary_state {
  size_t struct_size;
  void* summaries;  /* [layer, slot, 2, query_head, head_dim], 0 = short, 1 = long; f32 or f16 */
  float* query_rms; /* [layer, slot, query_head] */
  float* window;    /* [layer, slot, window, query_head, head_dim], or null when window is 0 */
  int64_t* steps;   /* [layer, slot] */
} growpage_summary_state;
typedef struct growpage_summary_sizes {
  size_t struct_size;
  size_t summaries; /* bytes of each array */
  size_t query_rms;
  size_t window;
  size_t steps;
} growpage_summary_sizes;
/* Bytes to allocate, zeroed; `options` null = defaults. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_summary_get_sizes(const growpage_kernel* kernel,
                                                        const growpage_summary_options* options,
                                                        growpage_summary_sizes* sizes);
/* As growpage_cache_update_summaries; of `kernel` the shape, isa and executor count.
 * [free | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_update_summaries(const growpage_kernel* kernel,
                                                       const growpage_summary_options* options,
                                                       const growpage_summary_state* state,
                                                       const growpage_summary_entry* entries,
                                                       size_t count, const growpage_tensor* queries,
                                                       int32_t first_layer, int32_t layers);

/* What demand and scores are computed from. */
typedef struct growpage_query {
  size_t struct_size;
  const growpage_summary_options* summary; /* null = defaults */
  const growpage_summary_state* state;
  const growpage_rope* rope;                   /* null = no rotation */
  const growpage_demand_options* demand;       /* null = defaults */
  const growpage_retention_options* retention; /* null = defaults */
  float softmax_scale;                         /* 0 = 1 / sqrt(head_dim) */
  int32_t summary_slot;
  int64_t position; /* of the latest query: true length − 1 */
} growpage_query;
/* [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_query_init(growpage_query* query, size_t struct_size);

/* Adds the request's demand over its candidates (all pages but the newest) to `demand`.
 * [free | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_measure_demand(const growpage_kernel* kernel,
                                                     const growpage_query* query,
                                                     growpage_demand* demand);
/* Retention score of every used slot: `scores` [layer, kv_head, stride], stride ≥ slots. `demand`
 * (null = not wanted) as above, from the same pass over K. With global_decay, the scores of the
 * last compaction for slots [0, old_slots) are read from `scores` itself; else old_slots is 0.
 * [free | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_score(const growpage_kernel* kernel,
                                            const growpage_query* query, int32_t old_slots,
                                            float* scores, int64_t stride, growpage_demand* demand);
/* Chooses `keep` of the private pages' slots per (layer, head) by `scores` [layer, kv_head,
 * stride]; slots [0, protected_slots) and pages not marked private are kept. `marks` [ceil(slots /
 * page_size)] GROWPAGE_PAGE_* bits. Out: `bits` [layer, kv_head, words], bit s % 64 of word s / 64
 * = slot s, words ≥ ceil(slots / 64); `page_kept` [ceil(slots / page_size)] rows kept over all
 * layers and heads. `retention` null = defaults. [free | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_select(const growpage_kernel* kernel,
                                             const growpage_retention_options* retention,
                                             const float* scores, int64_t stride,
                                             const uint8_t* marks, int32_t protected_slots,
                                             int32_t keep, uint64_t* bits, int64_t words,
                                             int32_t* page_kept);
/* Chooses the pages to empty from `marks` [pages] and `page_kept` [pages]. GROWPAGE_AT_CAPACITY
 * when fewer than `victims` qualify. [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_plan_compaction(const uint8_t* marks,
                                                      const int32_t* page_kept, size_t pages,
                                                      int32_t victims, int32_t strategy,
                                                      growpage_compaction_plan* plan);
/* Moves the kept rows out of the plan's victim pages, in place, K and V. All slots of the request's
 * pages are used (slots = pages · page_size). Afterwards the table is: the pages but the victims,
 * in order, then the victims. `scores` (null = none) [layer, kv_head, stride] follow their rows.
 * GROWPAGE_INVALID_ARGUMENT when `bits` keep more rows than there is room for.
 * [free | kept | synchronises] since 0.1 */
GROWPAGE_API growpage_status growpage_compact(const growpage_kernel* kernel, const uint8_t* marks,
                                              const growpage_compaction_plan* plan,
                                              const uint64_t* bits, int64_t words, float* scores,
                                              int64_t stride);

/* ==== 9  DLPack =================================================================================
 *
 * Layout-compatible with dlpack.h 0.8 (DLManagedTensor) and 1.0 (DLManagedTensorVersioned).
 */

typedef struct growpage_dl_tensor {
  void* data;
  struct {
    int32_t type; /* 1 = CPU */
    int32_t id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code; /* 2 = float, 4 = bfloat */
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;   /* [ndim] */
  int64_t* strides; /* [ndim] in elements, or null = packed */
  uint64_t byte_offset;
} growpage_dl_tensor;

typedef struct growpage_dl_managed_tensor {
  growpage_dl_tensor tensor;
  void* manager_context;
  void (*deleter)(struct growpage_dl_managed_tensor* self);
} growpage_dl_managed_tensor;

typedef struct growpage_dl_managed_tensor_versioned {
  struct {
    uint32_t major; /* 1 */
    uint32_t minor;
  } version;
  void* manager_context;
  void (*deleter)(struct growpage_dl_managed_tensor_versioned* self);
  uint64_t flags; /* bit 0: read only */
  growpage_dl_tensor tensor;
} growpage_dl_managed_tensor_versioned;

/* A view of a DLPack tensor with its axes put in order: axes[i] is the letter of the tensor's axis
 * i and `order` the wanted order, e.g. axes "lpthd" (vLLM's NHD) and order "lphtd" (what
 * growpage_cache_options.k wants). An axis of `order` that `axes` lacks gets extent 1. The managed
 * tensor stays the caller's: keep it alive while the view is used, call its deleter afterwards.
 * GROWPAGE_UNSUPPORTED for devices but the CPU and for element types but f32, f16, bf16.
 * [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_tensor_from_dlpack(const growpage_dl_managed_tensor* managed,
                                                         const char* axes, const char* order,
                                                         growpage_tensor* tensor);
/* The same for version 1.x of the protocol. A read-only tensor is refused when `writable` is 1.
 * [free | kept | host] since 0.1 */
GROWPAGE_API growpage_status growpage_tensor_from_dlpack_versioned(
    const growpage_dl_managed_tensor_versioned* managed, const char* axes, const char* order,
    int32_t writable, growpage_tensor* tensor);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GROWPAGE_GROWPAGE_H */
