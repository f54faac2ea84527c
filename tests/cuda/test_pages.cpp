// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/mirrored_tensor.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/pages.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

using namespace growpage;
using test::Arrangement;

namespace {

/// Host memory that the device can address.
class PinnedBytes {
 public:
  explicit PinnedBytes(std::size_t size) : size_(size) {
    void* memory = nullptr;
    REQUIRE(cudaMallocHost(&memory, size) == cudaSuccess);
    data_ = static_cast<std::byte*>(memory);
    std::memset(data_, 0x5c, size);
  }
  ~PinnedBytes() { (void)cudaFreeHost(data_); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  [[nodiscard]] std::byte* get() const { return data_; }
  [[nodiscard]] std::vector<std::byte> values() const { return {data_, data_ + size_}; }

 private:
  std::size_t size_;
  std::byte* data_ = nullptr;
};

struct PageCase {
  CacheShape shape{.layers = 2, .query_heads = 2, .kv_heads = 2, .head_dim = 20, .page_size = 16};
  DType dtype = DType::bf16;
  Arrangement arrangement = Arrangement::hnd;
  bool v_in_k = false;
};

std::vector<PageCase> page_cases() {
  std::vector<PageCase> cases;
  for (const auto arrangement :
       {Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const std::int32_t dim : {64, 20, 33}) {
        PageCase in;
        in.arrangement = arrangement;
        in.dtype = dtype;
        in.shape.head_dim = dim;
        in.shape.value_dim = dim == 20 ? 40 : 0;
        cases.push_back(in);
      }
    }
  }
  for (const std::int32_t dim : {80, 128, 256}) {
    PageCase in;
    in.shape.head_dim = dim;
    in.shape.page_size = 32;
    in.v_in_k = dim == 128;
    cases.push_back(in);
  }
  return cases;
}

constexpr std::int32_t pool = 6;

}  // namespace

TEST_CASE("pages are copied in order, and nothing else is written") {
  const std::vector<PageCopy> copies{{PageId{1}, PageId{4}},
                                     {PageId{4}, PageId{0}},  // what the first one wrote
                                     {PageId{3}, PageId{1}},  // over the first one's source
                                     {PageId{0}, PageId{5}}};
  std::vector<PageCopy> padded = copies;
  padded.insert(padded.begin() + 1, {PageId{-1}, PageId{2}});
  padded.push_back({PageId{2}, PageId{-1}});
  for (const PageCase& in : page_cases()) {
    test::Random random(3);
    test::MirroredCache cache(in.shape, pool, in.dtype, in.arrangement, random, in.v_in_k);
    const test::DeviceArray<PageCopy> device_copies(padded);
    REQUIRE(cuda::copy_pages({in.shape, cache.device(), device_copies.get(),
                              static_cast<std::int32_t>(padded.size())},
                             {})
                .ok());
    CpuBackend({}, CpuBackend::Isa::scalar).copy_pages(in.shape, cache.host(), copies);
    CAPTURE(in.shape.head_dim, static_cast<int>(in.arrangement), dtype_name(in.dtype));
    CHECK(cache.equal());
  }
}

TEST_CASE("pages go to packed host memory and come back elsewhere") {
  const std::vector<PageTransfer> out{
      {PageId{2}, PageId{0}}, {PageId{5}, PageId{3}}, {PageId{0}, PageId{1}}};
  const std::vector<PageTransfer> back{{PageId{1}, PageId{3}}, {PageId{4}, PageId{0}}};
  for (const PageCase& in : page_cases()) {
    test::Random random(4);
    test::MirroredCache cache(in.shape, pool, in.dtype, in.arrangement, random, in.v_in_k);
    const auto size = static_cast<std::size_t>(page_bytes(in.shape, cache.host()));
    const PinnedBytes host(4 * size);
    std::vector<std::byte> want = host.values();
    CpuBackend oracle({}, CpuBackend::Isa::scalar);
    oracle.pages_to_host(in.shape, cache.host(), out, want.data());
    oracle.pages_from_host(in.shape, cache.host(), back, want.data());

    std::vector<PageTransfer> padded_out = out;
    padded_out.push_back({PageId{-1}, PageId{2}});
    std::vector<PageTransfer> padded_back = back;
    padded_back.push_back({PageId{2}, PageId{-1}});
    const test::DeviceArray<PageTransfer> device_out(padded_out);
    const test::DeviceArray<PageTransfer> device_back(padded_back);
    REQUIRE(cuda::pages_to_host({in.shape, cache.device(), device_out.get(),
                                 static_cast<std::int32_t>(padded_out.size()), host.get()},
                                {})
                .ok());
    REQUIRE(cuda::pages_from_host({in.shape, cache.device(), device_back.get(),
                                   static_cast<std::int32_t>(padded_back.size()), host.get()},
                                  {})
                .ok());
    CAPTURE(in.shape.head_dim, static_cast<int>(in.arrangement), dtype_name(in.dtype));
    CHECK(cache.equal());  // synchronises
    CHECK(host.values() == want);
  }
}

TEST_CASE("no pages") {
  CHECK(cuda::copy_pages({}, {}).ok());
  CHECK(cuda::pages_to_host({}, {}).ok());
  CHECK(cuda::pages_from_host({}, {}).ok());
}
