// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "growpage/backend/contract.hpp"

namespace growpage {

/// A backend chosen at run time: holds any type that models KvBackend, and models it itself. A
/// virtual call per kernel launch. Move-only.
class AnyBackend {
 public:
  template <class B>
    requires(!std::is_same_v<std::remove_cvref_t<B>, AnyBackend> && KvBackend<B>)
  AnyBackend(B backend)  // NOLINT(google-explicit-constructor): a backend is one
      : backend_(std::make_unique<Model<B>>(std::move(backend))) {}

  [[nodiscard]] void* allocate(std::int64_t bytes) { return backend_->allocate(bytes); }
  void deallocate(void* memory, std::int64_t bytes) noexcept {
    backend_->deallocate(memory, bytes);
  }
  [[nodiscard]] void* allocate_host(std::int64_t bytes) { return backend_->allocate_host(bytes); }
  void deallocate_host(void* memory, std::int64_t bytes) noexcept {
    backend_->deallocate_host(memory, bytes);
  }
  [[nodiscard]] bool host_accessible() const noexcept { return backend_->host_accessible(); }
  [[nodiscard]] Status take_status() noexcept { return backend_->take_status(); }
  [[nodiscard]] std::int64_t workspace_bytes(const CacheShape& shape,
                                             std::int32_t max_slots) const {
    return backend_->workspace_bytes(shape, max_slots);
  }
  void summary_update(const SummaryUpdate& update, StreamView stream = {}) {
    backend_->summary_update(update, stream);
  }
  void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream = {}) {
    backend_->boundary_pass(pass, workspace, stream);
  }
  void select(const Selection& selection, void* workspace, StreamView stream = {}) {
    backend_->select(selection, workspace, stream);
  }
  void compact(const CompactionMove& move, void* workspace, StreamView stream = {}) {
    backend_->compact(move, workspace, stream);
  }
  void copy_pages(const CacheShape& shape, const KvView& kv, std::span<const PageCopy> copies,
                  StreamView stream = {}) {
    backend_->copy_pages(shape, kv, copies, stream);
  }
  void pages_to_host(const CacheShape& shape, const KvView& kv,
                     std::span<const PageTransfer> transfers, void* host, StreamView stream = {}) {
    backend_->pages_to_host(shape, kv, transfers, host, stream);
  }
  void pages_from_host(const CacheShape& shape, const KvView& kv,
                       std::span<const PageTransfer> transfers, const void* host,
                       StreamView stream = {}) {
    backend_->pages_from_host(shape, kv, transfers, host, stream);
  }
  void copy_to_host(void* host, const void* device, std::int64_t bytes, StreamView stream = {}) {
    backend_->copy_to_host(host, device, bytes, stream);
  }
  void copy_from_host(void* device, const void* host, std::int64_t bytes, StreamView stream = {}) {
    backend_->copy_from_host(device, host, bytes, stream);
  }
  void append_kv(const AppendKv& append, StreamView stream = {}) {
    backend_->append_kv(append, stream);
  }
  void paged_attention(const PagedAttention& attention, void* workspace, StreamView stream = {}) {
    backend_->paged_attention(attention, workspace, stream);
  }
  void synchronize(StreamView stream = {}) { backend_->synchronize(stream); }
  [[nodiscard]] const char* name() const noexcept { return backend_->name(); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual void* allocate(std::int64_t bytes) = 0;
    virtual void deallocate(void* memory, std::int64_t bytes) noexcept = 0;
    virtual void* allocate_host(std::int64_t bytes) = 0;
    virtual void deallocate_host(void* memory, std::int64_t bytes) noexcept = 0;
    virtual bool host_accessible() const noexcept = 0;
    virtual Status take_status() noexcept = 0;
    virtual std::int64_t workspace_bytes(const CacheShape& shape, std::int32_t slots) const = 0;
    virtual void summary_update(const SummaryUpdate& update, StreamView stream) = 0;
    virtual void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream) = 0;
    virtual void select(const Selection& selection, void* workspace, StreamView stream) = 0;
    virtual void compact(const CompactionMove& move, void* workspace, StreamView stream) = 0;
    virtual void copy_pages(const CacheShape& shape, const KvView& kv,
                            std::span<const PageCopy> copies, StreamView stream) = 0;
    virtual void pages_to_host(const CacheShape& shape, const KvView& kv,
                               std::span<const PageTransfer> transfers, void* host,
                               StreamView stream) = 0;
    virtual void pages_from_host(const CacheShape& shape, const KvView& kv,
                                 std::span<const PageTransfer> transfers, const void* host,
                                 StreamView stream) = 0;
    virtual void copy_to_host(void* host, const void* device, std::int64_t bytes,
                              StreamView stream) = 0;
    virtual void copy_from_host(void* device, const void* host, std::int64_t bytes,
                                StreamView stream) = 0;
    virtual void append_kv(const AppendKv& append, StreamView stream) = 0;
    virtual void paged_attention(const PagedAttention& attention, void* workspace,
                                 StreamView stream) = 0;
    virtual void synchronize(StreamView stream) = 0;
    virtual const char* name() const noexcept = 0;
  };

  template <class B>
  struct Model final : Interface {
    explicit Model(B&& b) : backend(std::move(b)) {}
    void* allocate(std::int64_t bytes) override { return backend.allocate(bytes); }
    void deallocate(void* memory, std::int64_t bytes) noexcept override {
      backend.deallocate(memory, bytes);
    }
    void* allocate_host(std::int64_t bytes) override { return backend.allocate_host(bytes); }
    void deallocate_host(void* memory, std::int64_t bytes) noexcept override {
      backend.deallocate_host(memory, bytes);
    }
    bool host_accessible() const noexcept override { return backend.host_accessible(); }
    Status take_status() noexcept override { return backend.take_status(); }
    std::int64_t workspace_bytes(const CacheShape& shape, std::int32_t slots) const override {
      return backend.workspace_bytes(shape, slots);
    }
    void summary_update(const SummaryUpdate& update, StreamView stream) override {
      backend.summary_update(update, stream);
    }
    void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream) override {
      backend.boundary_pass(pass, workspace, stream);
    }
    void select(const Selection& selection, void* workspace, StreamView stream) override {
      backend.select(selection, workspace, stream);
    }
    void compact(const CompactionMove& move, void* workspace, StreamView stream) override {
      backend.compact(move, workspace, stream);
    }
    void copy_pages(const CacheShape& shape, const KvView& kv, std::span<const PageCopy> copies,
                    StreamView stream) override {
      backend.copy_pages(shape, kv, copies, stream);
    }
    void pages_to_host(const CacheShape& shape, const KvView& kv,
                       std::span<const PageTransfer> transfers, void* host,
                       StreamView stream) override {
      backend.pages_to_host(shape, kv, transfers, host, stream);
    }
    void pages_from_host(const CacheShape& shape, const KvView& kv,
                         std::span<const PageTransfer> transfers, const void* host,
                         StreamView stream) override {
      backend.pages_from_host(shape, kv, transfers, host, stream);
    }
    void copy_to_host(void* host, const void* device, std::int64_t bytes,
                      StreamView stream) override {
      backend.copy_to_host(host, device, bytes, stream);
    }
    void copy_from_host(void* device, const void* host, std::int64_t bytes,
                        StreamView stream) override {
      backend.copy_from_host(device, host, bytes, stream);
    }
    void append_kv(const AppendKv& append, StreamView stream) override {
      backend.append_kv(append, stream);
    }
    void paged_attention(const PagedAttention& attention, void* workspace,
                         StreamView stream) override {
      backend.paged_attention(attention, workspace, stream);
    }
    void synchronize(StreamView stream) override { backend.synchronize(stream); }
    const char* name() const noexcept override { return backend.name(); }

    B backend;
  };

  std::unique_ptr<Interface> backend_;
};

static_assert(KvBackend<AnyBackend>);

}  // namespace growpage
