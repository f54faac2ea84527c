// SPDX-License-Identifier: Apache-2.0
#include "simt/device_array.hpp"
#include "simt/emulation.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;
using simt::expect_refusal;

__global__ void add(int* value, int summand) { *value += summand; }

/// Two streams, an event and whatever graph a test captures.
struct Scene {
  cudaStream_t stream = nullptr;
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  DeviceArray<int> value{1};

  Scene() {
    cudaStreamCreate(&stream);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~Scene() {
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
    cudaStreamDestroy(other);
    cudaStreamDestroy(stream);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    CHECK(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
  }
  void launch(cudaStream_t on, int summand) {
    CHECK(simt::launch(add, 1, 1, 0, on, value.data(), summand) == cudaSuccess);
  }
  cudaStreamCaptureStatus status() {
    cudaStreamCaptureStatus status{};
    CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
    return status;
  }
};

TEST_CASE("a captured stream does nothing, its graph does it at every launch") {
  simt::for_each_schedule([] {
    Scene scene;
    CHECK(scene.status() == cudaStreamCaptureStatusNone);
    scene.begin();
    CHECK(scene.status() == cudaStreamCaptureStatusActive);
    CHECK(cudaMemsetAsync(scene.value.data(), 0, sizeof(int), scene.stream) == cudaSuccess);
    scene.launch(scene.stream, 5);
    scene.launch(scene.stream, 2);
    CHECK(cudaStreamEndCapture(scene.stream, &scene.graph) == cudaSuccess);
    CHECK(scene.status() == cudaStreamCaptureStatusNone);
    std::size_t nodes = 0;
    CHECK(cudaGraphGetNodes(scene.graph, nullptr, &nodes) == cudaSuccess);
    CHECK(nodes == 3);
    CHECK(scene.value.host()[0] == 0);

    cudaGraphExec_t executable = nullptr;
    CHECK(cudaGraphInstantiate(&executable, scene.graph, 0) == cudaSuccess);
    for (int launches = 0; launches < 3; ++launches) {
      CHECK(cudaGraphLaunch(executable, scene.stream) == cudaSuccess);
      scene.launch(scene.stream, 100);
      CHECK(scene.value.host()[0] == 107);
    }
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  });
}

TEST_CASE("a capture takes in a stream that waits for it, which has to come back") {
  Scene scene;
  const auto fork = [&] {
    scene.begin();
    scene.launch(scene.stream, 1);
    cudaEventRecord(scene.event, scene.stream);
    CHECK(cudaStreamWaitEvent(scene.other, scene.event, 0) == cudaSuccess);
    scene.launch(scene.other, 10);
  };
  const auto join = [&] {
    cudaEventRecord(scene.event, scene.other);
    CHECK(cudaStreamWaitEvent(scene.stream, scene.event, 0) == cudaSuccess);
  };
  SECTION("joined") {
    fork();
    join();
    CHECK(cudaStreamEndCapture(scene.stream, &scene.graph) == cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    cudaGraphInstantiate(&executable, scene.graph, 0);
    CHECK(cudaGraphLaunch(executable, scene.stream) == cudaSuccess);
    CHECK(scene.value.host()[0] == 11);
    cudaGraphExecDestroy(executable);
  }
  SECTION("not joined, or not with all of its work") {
    fork();
    if (GENERATE(false, true)) {
      join();
      scene.launch(scene.other, 10);
    }
    expect_refusal(cudaStreamEndCapture(scene.stream, &scene.graph),
                   cudaErrorStreamCaptureUnjoined);
    CHECK(scene.graph == nullptr);
  }
  scene.launch(scene.other, 1);  // no stream captures any more
  CHECK(cudaStreamSynchronize(scene.other) == cudaSuccess);
}

using Forbidden = cudaError_t (*)(Scene&);

void expect_forbidden(Forbidden call, cudaError_t error = cudaErrorStreamCaptureUnsupported) {
  Scene scene;
  scene.begin();
  scene.launch(scene.stream, 1);
  expect_refusal(call(scene), error);
  CHECK(scene.status() == cudaStreamCaptureStatusInvalidated);
  expect_refusal(simt::launch(add, 1, 1, 0, scene.stream, scene.value.data(), 1),
                 cudaErrorStreamCaptureInvalidated);
  expect_refusal(cudaStreamEndCapture(scene.stream, &scene.graph),
                 cudaErrorStreamCaptureInvalidated);
  CHECK(scene.graph == nullptr);
  scene.launch(scene.stream, 1);
  CHECK(scene.value.host()[0] == 1);
}

TEST_CASE("a capture in which something waits or allocates has no graph") {
  expect_forbidden([](Scene& scene) { return cudaStreamSynchronize(scene.stream); });
  expect_forbidden([](Scene& scene) { return cudaStreamQuery(scene.stream); });
  expect_forbidden([](Scene&) { return cudaDeviceSynchronize(); });
  expect_forbidden([](Scene& scene) { return cudaEventSynchronize(scene.event); });
  expect_forbidden([](Scene& scene) { return cudaEventQuery(scene.event); });
  expect_forbidden([](Scene&) {
    void* memory = nullptr;
    return cudaMalloc(&memory, 16);
  });
  expect_forbidden([](Scene&) {
    void* memory = nullptr;
    return cudaMallocHost(&memory, 16);
  });
  expect_forbidden([](Scene&) { return cudaFree(nullptr); });
  expect_forbidden([](Scene& scene) {
    int host = 0;
    return cudaMemcpy(&host, scene.value.data(), sizeof host, cudaMemcpyDeviceToHost);
  });
  expect_forbidden([](Scene& scene) { return cudaMemsetAsync(scene.value.data(), 0, 4, nullptr); },
                   cudaErrorStreamCaptureImplicit);
  expect_forbidden(
      [](Scene& scene) {
        cudaEventRecord(scene.event, scene.other);
        return cudaStreamWaitEvent(scene.stream, scene.event, 0);
      },
      cudaErrorStreamCaptureIsolation);
}

TEST_CASE("a relaxed capture leaves the rest of the program alone") {
  Scene scene;
  scene.begin(cudaStreamCaptureModeRelaxed);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  CHECK(cudaStreamSynchronize(scene.other) == cudaSuccess);
  scene.launch(scene.stream, 1);
  CHECK(cudaStreamEndCapture(scene.stream, &scene.graph) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("captures that cannot begin or end") {
  Scene scene;
  expect_refusal(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
                 cudaErrorStreamCaptureUnsupported);
  expect_refusal(cudaStreamEndCapture(scene.stream, &scene.graph), cudaErrorIllegalState);
  scene.begin();
  expect_refusal(cudaStreamBeginCapture(scene.stream, cudaStreamCaptureModeGlobal),
                 cudaErrorIllegalState);
  CHECK(cudaStreamEndCapture(scene.stream, &scene.graph) == cudaSuccess);
}

}  // namespace
