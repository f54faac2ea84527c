// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "simt/device_array.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;
using simt::expect_refusal;

TEST_CASE("copies between host and device, and within it") {
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> a(values);
  const DeviceArray<int> b(1000);
  CHECK(cudaMemcpy(b.data() + 10, a.data(), 100, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(cudaMemset(b.data(), 0xFF, 8) == cudaSuccess);
  const std::vector<int> result = b.host();
  CHECK(result[0] == -1);
  CHECK(result[2] == 0);
  CHECK(result[10] == 0);
  CHECK(result[34] == 24);
  CHECK(result[35] == 0);
  simt::expect_clean();
}

TEST_CASE("a pitched copy takes the rows apart") {
  std::vector<int> rows(6 * 4);
  std::iota(rows.begin(), rows.end(), 0);
  const DeviceArray<int> device(3 * 4);
  CHECK(cudaMemcpy2D(device.data(), 12, rows.data() + 1, 24, 12, 4, cudaMemcpyHostToDevice) ==
        cudaSuccess);
  CHECK(device.host() == std::vector<int>{1, 2, 3, 7, 8, 9, 13, 14, 15, 19, 20, 21});
  expect_refusal(cudaMemcpy2D(device.data(), 8, rows.data(), 24, 12, 4, cudaMemcpyHostToDevice),
                 cudaErrorInvalidPitchValue);
}

TEST_CASE("a copy beyond an allocation or from the wrong side is refused") {
  const DeviceArray<int> device(10);
  std::vector<int> host(20);
  CHECK(expect_refusal(cudaMemcpy(device.data() + 1, host.data(), 40, cudaMemcpyHostToDevice),
                       cudaErrorInvalidValue) ==
        "40 bytes reach beyond the end of an allocation of 40");
  expect_refusal(cudaMemcpy(host.data(), device.data(), 40, cudaMemcpyHostToDevice),
                 cudaErrorInvalidValue);
  expect_refusal(cudaMemcpy(host.data(), device.data(), 40, cudaMemcpyHostToHost),
                 cudaErrorInvalidValue);
  expect_refusal(cudaMemcpy(device.data(), host.data(), 40, cudaMemcpyDeviceToDevice),
                 cudaErrorInvalidValue);
  expect_refusal(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device.data(), host.data(), 40, cudaMemcpyDefault) == cudaSuccess);
  simt::expect_clean();
}

TEST_CASE("device memory begins as garbage and ends at the device's size") {
  unsigned* memory = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&memory), 8) == cudaSuccess);
  unsigned value = 0;
  CHECK(cudaMemcpy(&value, memory + 1, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(value == 0xA5A5A5A5U);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);

  std::size_t available = 0;
  std::size_t total = 0;
  CHECK(cudaMemGetInfo(&available, &total) == cudaSuccess);
  CHECK(available == total - 8);
  void* too_much = memory;
  expect_refusal(cudaMalloc(&too_much, available + 1), cudaErrorMemoryAllocation);
  CHECK(too_much == nullptr);

  CHECK(cudaFree(memory) == cudaSuccess);
  expect_refusal(cudaFree(memory), cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
}

TEST_CASE("pointers know what they are") {
  const auto type_of = [](const void* pointer) {
    cudaPointerAttributes attributes{};
    CHECK(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
    return attributes.type;
  };
  const DeviceArray<int> device(4);
  void* pinned = nullptr;
  REQUIRE(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault) == cudaSuccess);
  std::vector<int> pageable(4);
  CHECK(type_of(device.data() + 3) == cudaMemoryTypeDevice);
  CHECK(type_of(device.data() + 4) == cudaMemoryTypeUnregistered);
  CHECK(type_of(pinned) == cudaMemoryTypeHost);
  CHECK(type_of(pageable.data()) == cudaMemoryTypeUnregistered);

  CHECK(cudaHostRegister(pageable.data(), 16, cudaHostRegisterDefault) == cudaSuccess);
  CHECK(type_of(pageable.data() + 1) == cudaMemoryTypeHost);
  expect_refusal(cudaHostRegister(pageable.data(), 16, cudaHostRegisterDefault),
                 cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostUnregister(pageable.data()) == cudaSuccess);
  expect_refusal(cudaFreeHost(device.data()), cudaErrorInvalidValue);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  simt::expect_clean();
}

}  // namespace
