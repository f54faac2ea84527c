// SPDX-License-Identifier: Apache-2.0
#include "cache.hpp"

#include <limits>
#include <string>

#include "convert.hpp"
#include "defaults.hpp"
#include "layouts.hpp"
#include "structs.hpp"
#include "tensor.hpp"

#ifdef GROWPAGE_HAS_CUDA
#include "growpage/backend/cuda.hpp"
#endif

namespace growpage::capi {

Status Cache::not_own(std::uint64_t sequence) const {
  if (!manager->alive(SequenceId::from_bits(sequence))) return StatusCode::stale_id;
  return Status::invalid("sequence", std::to_string(sequence),
                         "a sequence made by growpage_cache_admit or growpage_cache_fork; this one "
                         "is a scheduler's");
}

Status Cache::require_own_fence(std::uint64_t fence) const {
  const FenceId id = FenceId::from_bits(fence);
  if (id.index < fences.size() && fences[id.index] == fence) return {};
  return StatusCode::stale_id;
}

Status Cache::require_kernels() const {
  if (kv) return {};
  return Status::error(StatusCode::unsupported, "growpage_cache_options.backend", "none",
                       "a backend with kernels");
}

namespace {

Status read_options(const growpage_cache_options& in, PagedKVCacheOptions& out,
                    std::int64_t& kv_pages) {
  Status s;
  if (!detail::require_range(s, "growpage_cache_options.prefix_caching", in.prefix_caching, 0, 1)) {
    return s;
  }
  out.shape = {in.layers, in.query_heads, in.kv_heads, in.head_dim, in.value_dim, in.page_size};
  out.pages.pages = in.pages;
  out.pages.page_size = in.page_size;
  out.pages.max_sequences = in.max_sequences;
  out.pages.max_pages_per_sequence = in.max_pages_per_sequence;
  out.pages.prefix_caching = in.prefix_caching != 0;
  out.pages.host_pages = in.host_pages;
  out.pages.max_fences = in.max_fences;
  out.pages.event_capacity = in.event_capacity;
  if (in.backend == GROWPAGE_BACKEND_NONE) return out.pages.validate();

  if (s = out.shape.validate(); !s.ok()) return s;
  if (!read_enum(s, "growpage_cache_options.dtype", in.dtype, DType::bf16, out.dtype) ||
      !read_enum(s, "growpage_cache_options.layout", in.layout, PageLayout::nhd, out.layout)) {
    return s;
  }
  if (in.k == nullptr && in.v != nullptr) {
    return Status::invalid("growpage_cache_options.k", "null", "given when v is");
  }
  const bool host = in.backend == GROWPAGE_BACKEND_CPU;
  if (in.k != nullptr) {
    s = read_kv_tensor("growpage_cache_options.k", in.k, out.shape, out.shape.head_dim, in.pages,
                       host, out.kv.k, kv_pages);
    if (!s.ok()) return s;
  }
  if (in.v != nullptr) {
    std::int64_t v_pages = 0;
    s = read_kv_tensor("growpage_cache_options.v", in.v, out.shape, out.shape.v_dim(), in.pages,
                       host, out.kv.v, v_pages);
    if (!s.ok()) return s;
  }
  if (s = read_summary(in.summary, out.summary); !s.ok()) return s;
  if (s = read_rope(in.rope, out.rope); !s.ok()) return s;
  if (s = read_demand(in.demand, out.demand); !s.ok()) return s;
  if (s = read_retention(in.retention, out.retention); !s.ok()) return s;
  out.softmax_scale = in.softmax_scale;
  out.score_buffers = in.score_buffers;
  return out.validate();
}

/// The sizes the cache is about to compute must be representable.
Status check_bytes(const PagedKVCacheOptions& o) {
  constexpr long double most = 1LL << 60;
  const auto heads = static_cast<long double>(o.shape.layers) * o.shape.kv_heads;
  const auto queries = static_cast<long double>(o.shape.layers) * o.shape.query_heads *
                       o.shape.head_dim * 4 * o.summary.slots;
  const auto slots =
      static_cast<long double>(o.pages.max_pages_per_sequence) * o.shape.page_size * 4;
  const long double sizes[] = {heads * o.shape.page_size * (o.shape.head_dim + o.shape.v_dim()) *
                                   4 * static_cast<long double>(o.pages.pages + o.pages.host_pages),
                               queries * (2 + o.summary.window),
                               heads * slots * (o.score_buffers + o.summary.slots),
                               static_cast<long double>(o.pages.max_sequences) / o.summary.slots *
                                       queries * (2 + o.summary.window) +
                                   static_cast<long double>(o.pages.max_sequences) * heads * slots};
  for (const long double size : sizes) {
    if (!(size < most)) {
      return Status::error(StatusCode::out_of_memory, "growpage_cache_options.pages",
                           std::to_string(o.pages.pages), "a cache of less than 2^60 bytes");
    }
  }
  return {};
}

Result<AnyBackend> make_backend(const growpage_cache_options& in, const Hooks& memory) {
  if (in.backend == GROWPAGE_BACKEND_CUDA) {
#ifdef GROWPAGE_HAS_CUDA
    return AnyBackend(CudaBackend());
#else
    return Status::error(StatusCode::unsupported, "growpage_cache_options.backend", "cuda",
                         "none or cpu: this build has no CUDA backend");
#endif
  }
  Status s;
  Executor executor;
  if (s = read_executor(in.executor, executor); !s.ok()) return s;
  CpuBackend::Isa isa{};
  if (!read_enum(s, "growpage_cache_options.isa", in.isa, CpuBackend::Isa::simd, isa)) return s;
  return AnyBackend(HookedCpuBackend(memory, executor, isa));
}

Status create(const growpage_cache_options* options, const growpage_hooks* hooks,
              growpage_cache** handle) {
  Status s;
  if (!detail::require_not_null(s, "cache", handle)) return s;
  growpage_cache_options in = default_cache();
  if (s = read_required("growpage_cache_options", options, in); !s.ok()) return s;
  Hooks memory;
  if (s = Hooks::read(hooks, memory); !s.ok()) return s;
  if (!detail::require_range(s, "growpage_cache_options.backend", in.backend, GROWPAGE_BACKEND_NONE,
                             GROWPAGE_BACKEND_CUDA)) {
    return s;
  }
  PagedKVCacheOptions full;
  std::int64_t kv_pages = in.pages;
  if (s = read_options(in, full, kv_pages); !s.ok()) return s;

  Owned<Cache> cache(memory);
  cache->kv_pages = kv_pages;
  if (in.backend == GROWPAGE_BACKEND_NONE) {
    Result<PageManager> manager = PageManager::create(full.pages);
    if (!manager.ok()) return manager.status();
    cache->manager = &cache->bare.emplace(std::move(manager).value());
  } else {
    if (s = check_bytes(full); !s.ok()) return s;
    Result<AnyBackend> backend = make_backend(in, memory);
    if (!backend.ok()) return backend.status();
    Result<Cache::Kv> kv = Cache::Kv::create(full, std::move(backend).value());
    if (!kv.ok()) return kv.status();
    cache->backend = in.backend;
    cache->manager = &cache->kv.emplace(std::move(kv).value());
    memory.log(GROWPAGE_LOG_DEBUG, "cache memory taken");
  }
  cache->sequences =
      detail::LazyArray<std::uint64_t>(static_cast<std::size_t>(full.pages.max_sequences));
  cache->fences = detail::LazyArray<std::uint64_t>(static_cast<std::size_t>(full.pages.max_fences));
  if (!cache->sequences.ok() || !cache->fences.ok()) return StatusCode::out_of_memory;
  cache->copies.reserve(64);
  cache->transfers.reserve(64);
  return cache.publish(handle);
}

}  // namespace

}  // namespace growpage::capi

using namespace growpage;
using namespace growpage::capi;

extern "C" {

growpage_status growpage_cache_create(const growpage_cache_options* options,
                                      const growpage_hooks* hooks, growpage_cache** cache) {
  return run(nullptr, [&] { return create(options, hooks, cache); });
}

growpage_status growpage_cache_destroy(growpage_cache* cache) {
  return destroy<Cache>(cache, [](Cache& c) -> Status {
    if (c.schedulers == 0) return {};
    return Status::error(StatusCode::protocol_error, "growpage_cache",
                         std::to_string(c.schedulers) + " scheduler(s) use it",
                         "destroyed after its schedulers");
  });
}

growpage_status growpage_cache_get_info(const growpage_cache* cache, growpage_cache_info* info) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    if (Status s = check_output("growpage_cache_info", info); !s.ok()) return s;
    const PageManager& manager = *c.manager;
    const PageCounts counts = manager.counts();
    const PageCounts host = manager.host_counts();
    growpage_cache_info out{};
    out.struct_size = sizeof out;
    out.backend_name = c.kv ? c.kv->backend().name() : "none";
    out.backend = c.backend;
    out.page_size = manager.options().page_size;
    out.pages = counts.total;
    out.free_pages = counts.free;
    out.cached_pages = counts.cached;
    out.referenced_pages = counts.referenced;
    out.in_flight_pages = counts.in_flight;
    out.host_pages = host.total;
    out.free_host_pages = host.free;
    out.sequences = manager.live_sequences();
    out.evicted_pages = manager.evicted_pages();
    out.copied_pages = manager.copied_pages();
    out.k_bytes_read = c.kv ? c.kv->k_bytes_read() : 0;
    write_struct(info, out);
    return {};
  });
}

growpage_status growpage_cache_get_kv(const growpage_cache* cache, growpage_tensor* k,
                                      growpage_tensor* v) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s = c.require_kernels();
    if (!s.ok()) return s;
    if (k != nullptr) s = check_output("growpage_tensor", k);
    if (s.ok() && v != nullptr) s = check_output("growpage_tensor", v);
    if (!s.ok()) return s;
    const CacheShape& shape = c.kv->shape();
    const KvView& kv = c.kv->kv();
    if (k != nullptr) write_struct(k, to_c_tensor(kv.k, shape, shape.head_dim, c.kv_pages));
    if (v != nullptr) {
      write_struct(v, to_c_tensor(kv.v.null() ? kv.k : kv.v, shape, shape.v_dim(), c.kv_pages));
    }
    return {};
  });
}

growpage_status growpage_cache_clear_prefix_cache(growpage_cache* cache) {
  return with<Cache>(cache, [](Cache& c) -> Status {
    c.manager->clear_prefix_cache();
    return {};
  });
}

growpage_status growpage_cache_check_invariants(const growpage_cache* cache) {
  return with<Cache>(cache, [](Cache& c) { return c.manager->check_invariants(); });
}

growpage_status growpage_cache_drain_events(growpage_cache* cache, growpage_kv_event* events,
                                            size_t capacity, size_t* count, int64_t* dropped) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    if (!detail::require_not_null(s, "count", count)) return s;
    KvEventRing& ring = c.manager->events();
    if (dropped != nullptr) *dropped = ring.dropped();
    if (events == nullptr) {
      *count = ring.size();
      return {};
    }
    std::size_t taken = 0;
    KvEvent event;
    while (taken < capacity && ring.pop(event)) {
      events[taken++] = {static_cast<std::int32_t>(event.kind),
                         event.page.value,
                         {event.hash.low, event.hash.high},
                         {event.parent.low, event.parent.high},
                         event.tokens,
                         0};
    }
    *count = taken;
    return {};
  });
}
}
