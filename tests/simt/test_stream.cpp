// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "simt/device_array.hpp"
#include "simt/emulation.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;
using simt::Streams;

/// Settings of one test.
class With {
 public:
  explicit With(Streams streams) : before_(simt::settings()) {
    simt::Settings changed = before_;
    changed.streams = streams;
    simt::configure(changed);
  }
  ~With() { simt::configure(before_); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  simt::Settings before_;
};

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    CHECK(cudaStreamCreateWithFlags(&handle_, flags) == cudaSuccess);
  }
  ~Stream() { cudaStreamDestroy(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaStream_t handle_ = nullptr;
};

__global__ void append(int* log, int value) {
  const int count = log[0];
  log[0] = count + 1;
  log[1 + count] = value;
}

/// Values in the order in which they came.
std::vector<int> entries(const DeviceArray<int>& log) {
  std::vector<int> all = log.host();
  const auto count = static_cast<std::size_t>(all[0]);
  return {all.begin() + 1, all.begin() + 1 + static_cast<std::ptrdiff_t>(count)};
}

TEST_CASE("deferred work waits for a synchronisation, eager work does not") {
  const DeviceArray<int> device(1, 7);
  for (const Streams mode : {Streams::deferred, Streams::eager}) {
    const With settings(mode);
    const Stream stream;
    int host = 0;
    cudaMemcpyAsync(&host, device.data(), sizeof host, cudaMemcpyDeviceToHost, stream);
    CHECK(host == (mode == Streams::eager ? 7 : 0));
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(host == 7);
  }
}

TEST_CASE("a stream keeps its order and an event orders two") {
  simt::for_each_schedule([] {
    const DeviceArray<int> log(10);
    const Stream first;
    const Stream second;
    cudaEvent_t event = nullptr;
    cudaEventCreate(&event);
    for (int value = 0; value < 3; ++value) simt::launch(append, 1, 1, 0, first, log.data(), value);
    cudaEventRecord(event, first);
    CHECK(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
    cudaEventDestroy(event);  // the wait stays
    for (int value = 3; value < 6; ++value) {
      simt::launch(append, 1, 1, 0, second, log.data(), value);
    }
    CHECK(cudaStreamSynchronize(second) == cudaSuccess);
    CHECK(entries(log) == std::vector<int>{0, 1, 2, 3, 4, 5});
  });
}

TEST_CASE("unordered streams come in both orders") {
  bool first_was_first = false;
  bool second_was_first = false;
  const simt::Settings environment = simt::settings();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    simt::configure({seed, environment.order, Streams::mix, false});
    const DeviceArray<int> log(3);
    const Stream first;
    const Stream second;
    simt::launch(append, 1, 1, 0, first, log.data(), 1);
    simt::launch(append, 1, 1, 0, second, log.data(), 2);
    cudaDeviceSynchronize();
    (entries(log).front() == 1 ? first_was_first : second_was_first) = true;
  }
  simt::configure(environment);
  CHECK(first_was_first);
  CHECK(second_was_first);
}

TEST_CASE("the default stream waits for blocking streams only, and they for it") {
  const With settings(Streams::deferred);
  const DeviceArray<int> log(10);
  const Stream blocking(cudaStreamDefault);
  const Stream independent;
  simt::launch(append, 1, 1, 0, independent, log.data(), 9);
  simt::launch(append, 1, 1, 0, blocking, log.data(), 1);
  simt::launch(append, 1, 1, 0, nullptr, log.data(), 2);
  simt::launch(append, 1, 1, 0, blocking, log.data(), 3);
  CHECK(cudaStreamSynchronize(blocking) == cudaSuccess);
  CHECK(entries(log) == std::vector<int>{1, 2, 3});
  CHECK(cudaStreamSynchronize(independent) == cudaSuccess);
  CHECK(entries(log) == std::vector<int>{1, 2, 3, 9});
}

TEST_CASE("asking often enough finishes the work") {
  const With settings(Streams::deferred);
  const DeviceArray<int> log(10);
  const Stream stream;
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  for (int value = 0; value < 4; ++value) simt::launch(append, 1, 1, 0, stream, log.data(), value);
  cudaEventRecord(event, stream);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  int questions = 1;
  while (cudaEventQuery(event) == cudaErrorNotReady) ++questions;
  CHECK(questions == 5);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, event, event) == cudaSuccess);
  CHECK(milliseconds == 0.0F);
  cudaEventDestroy(event);
}

TEST_CASE("a host function runs in its stream") {
  const With settings(Streams::deferred);
  const Stream stream;
  int calls = 0;
  cudaLaunchHostFunc(
      stream, [](void* counter) { ++*static_cast<int*>(counter); }, &calls);
  CHECK(calls == 0);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(calls == 1);
}

TEST_CASE("a stream that has been destroyed is known as such, after its work") {
  const DeviceArray<int> log(10);
  std::optional<Stream> stream(std::in_place);
  const cudaStream_t handle = *stream;
  simt::launch(append, 1, 1, 0, handle, log.data(), 5);
  stream.reset();
  CHECK(entries(log) == std::vector<int>{5});
  simt::expect_refusal(cudaStreamSynchronize(handle), cudaErrorInvalidResourceHandle);
}

}  // namespace
