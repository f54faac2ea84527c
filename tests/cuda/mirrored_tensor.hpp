// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device_array.hpp"
#include "growpage/core/kv_layout.hpp"
#include "support/random_cache.hpp"

namespace growpage::test {

/// K or V memory of a small pool, twice: on the host, for the oracle, and on the device. Every
/// element, gaps between rows too, is a random number, so that equal bytes at the end mean that
/// nothing else was written either.
class MirroredTensor {
 public:
  MirroredTensor(const CacheShape& shape, std::int32_t pages, std::int32_t dim, DType dtype,
                 Arrangement arrangement, Random& random)
      : layers_(shape.layers) {
    tensor_.dtype = dtype;
    tensor_.layout = layout(shape, pages, dim, arrangement);
    const std::int64_t elements = tensor_.layout.layer_stride * shape.layers;
    host_.resize(static_cast<std::size_t>(elements) * dtype_bytes(dtype));
    for (std::int64_t i = 0; i < elements; ++i) {
      store_element(host_.data(), dtype, i, static_cast<float>(random.normal()));
    }
    device_ = std::make_unique<DeviceArray<std::byte>>(host_);
    if (arrangement == Arrangement::per_layer) {
      host_bases_ = bases(host_.data());
      device_bases_ = std::make_unique<DeviceArray<void*>>(bases(device_->get()));
    }
  }

  [[nodiscard]] KvTensor host() { return view(host_.data(), host_bases_.data()); }
  [[nodiscard]] KvTensor device() const {
    return view(device_->get(), device_bases_ == nullptr ? nullptr : device_bases_->get());
  }
  [[nodiscard]] const std::vector<std::byte>& host_bytes() const { return host_; }
  [[nodiscard]] std::vector<std::byte> device_bytes() const { return device_->download(); }
  /// After the host's values were changed.
  void upload() { device_->upload(host_); }

 private:
  static KvLayout layout(const CacheShape& shape, std::int32_t pages, std::int32_t dim,
                         Arrangement arrangement) {
    switch (arrangement) {
      case Arrangement::nhd:
        return KvLayout::nhd(shape, pages, dim);
      case Arrangement::padded: {  // odd strides: rows of 16-bit elements are only 2-byte aligned
        const std::int64_t token = std::int64_t{shape.kv_heads} * (dim + 1) + 1;
        const std::int64_t page = token * shape.page_size + 3;
        return {page * pages + 5, page, dim + 1, token};
      }
      case Arrangement::hnd:
      case Arrangement::per_layer:
        break;
    }
    return KvLayout::hnd(shape, pages, dim);
  }
  /// One pointer a layer, the last layer first, so that base + layer · stride would be wrong.
  [[nodiscard]] std::vector<void*> bases(std::byte* memory) const {
    std::vector<void*> result;
    const std::int64_t bytes =
        tensor_.layout.layer_stride * static_cast<std::int64_t>(dtype_bytes(tensor_.dtype));
    for (std::int32_t l = layers_ - 1; l >= 0; --l) result.push_back(memory + l * bytes);
    return result;
  }
  [[nodiscard]] KvTensor view(void* memory, void* const* layer_bases) const {
    KvTensor t = tensor_;
    if (host_bases_.empty()) {
      t.base = memory;
    } else {
      t.layer_base = layer_bases;
    }
    return t;
  }

  std::int32_t layers_;
  KvTensor tensor_;
  std::vector<std::byte> host_;
  std::unique_ptr<DeviceArray<std::byte>> device_;
  std::vector<void*> host_bases_;
  std::unique_ptr<DeviceArray<void*>> device_bases_;
};

/// K and V of one pool.
struct MirroredCache {
  MirroredCache(const CacheShape& shape, std::int32_t pages, DType dtype, Arrangement arrangement,
                Random& random, bool v_is_k = false)
      : k(shape, pages, shape.head_dim, dtype, arrangement, random),
        v(shape, pages, shape.v_dim(), dtype, arrangement, random),
        v_in_k(v_is_k) {}

  [[nodiscard]] KvView host() { return {k.host(), v_in_k ? KvTensor{} : v.host()}; }
  [[nodiscard]] KvView device() const { return {k.device(), v_in_k ? KvTensor{} : v.device()}; }
  /// Whether both sides hold the same bytes.
  [[nodiscard]] bool equal() const {
    return k.device_bytes() == k.host_bytes() && v.device_bytes() == v.host_bytes();
  }

  MirroredTensor k;
  MirroredTensor v;
  bool v_in_k;
};

}  // namespace growpage::test
