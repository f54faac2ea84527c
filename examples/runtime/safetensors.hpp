// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "growpage/core/dtype.hpp"
#include "growpage/core/status.hpp"

namespace growpage::runtime {

/// A file mapped into memory, read only. Move-only.
class MappedFile {
 public:
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {data_.get(), data_.get_deleter().size};
  }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* data) const noexcept;
  };
  MappedFile(const std::byte* data, std::size_t size) : data_(data, Unmap{size}) {}

  std::unique_ptr<const std::byte[], Unmap> data_;
};

/// A tensor in a mapped file. Not aligned: the format promises nothing.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  ///< little-endian, row-major
};

/// The weights of a model: one model.safetensors, or the files of a model.safetensors.index.json.
class Checkpoint {
 public:
  /// invalid_argument naming the file and what in it is wrong; every offset is checked here, so
  /// that reading cannot leave the file.
  [[nodiscard]] static Result<Checkpoint> open(const std::filesystem::path& folder);

  /// Copies the tensor called `name` to `out`, as float. invalid_argument when it is not there or
  /// its shape is not `shape` (whose product is the size of `out`).
  Status read(std::string_view name, std::span<const std::int64_t> shape,
              std::span<float> out) const;
  [[nodiscard]] bool has(std::string_view name) const { return tensors_.contains(name); }

 private:
  Status add(const std::filesystem::path& path);

  std::vector<MappedFile> files_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace growpage::runtime
