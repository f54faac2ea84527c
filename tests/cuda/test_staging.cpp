// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <vector>

#include "backend/scene.hpp"
#include "growpage/backend/cuda.hpp"
#include "staging.cuh"
#include "support/catch.hpp"

namespace growpage::test {

TEST_CASE("cuda: host metadata of any length reaches the device", "[cuda]") {
  CudaBackend backend;
  std::vector<std::int32_t> table(2500);  // more than three parameter blocks
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i * i);
  const std::vector<std::uint8_t> marks(777, 3);
  DeviceArray<CudaBackend, std::byte> workspace(backend, std::vector<std::byte>(16384));
  cuda::Staging staging(workspace.get(), nullptr);
  const std::int32_t* const first = staging.put(std::span<const std::int32_t>(table));
  const std::uint8_t* const second = staging.put(std::span<const std::uint8_t>(marks));
  REQUIRE(staging.status().ok());
  std::vector<std::int32_t> table_back(table.size());
  std::vector<std::uint8_t> marks_back(marks.size());
  backend.copy_to_host(table_back.data(), first, 2500 * 4);
  backend.copy_to_host(marks_back.data(), second, 777);
  backend.synchronize();
  CHECK(table_back == table);
  CHECK(marks_back == marks);
  CHECK(static_cast<std::byte*>(staging.end()) <= workspace.get() + 16384);
}

}  // namespace growpage::test
