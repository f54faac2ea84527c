// SPDX-License-Identifier: Apache-2.0
#include "safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace growpage::runtime {

static_assert(std::endian::native == std::endian::little, "tensors are used as they lie");

namespace {

using nlohmann::json;

std::optional<DType> dtype_of(const json& name) {
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  return std::nullopt;
}

/// The product of a shape's extents, or none where it is not a shape or exceeds `limit`.
std::optional<std::size_t> element_count(const json& shape, std::size_t limit) {
  if (!shape.is_array()) return std::nullopt;
  std::size_t count = 1;
  for (const json& extent : shape) {
    if (!extent.is_number_unsigned()) return std::nullopt;
    const auto n = extent.get<std::uint64_t>();
    if (n != 0 && count > limit / n) return std::nullopt;
    count *= n;
  }
  return count;
}

/// One entry of the header. `data` is what follows the header.
Result<StoredTensor> parse_entry(const json& entry, const std::string& what,
                                 std::span<const std::byte> data) {
  const auto field = [&](const char* name) {
    return entry.is_object() && entry.contains(name) ? entry.at(name) : json();
  };
  const json dtype = field("dtype");
  const json shape = field("shape");
  const json offsets = field("data_offsets");
  StoredTensor tensor;
  const std::optional<DType> known = dtype_of(dtype);
  if (!known) return Status::invalid(what + ".dtype", dtype.dump(), "F32, F16 or BF16");
  tensor.dtype = *known;
  const std::optional<std::size_t> count = element_count(shape, data.size());
  if (!count) {
    return Status::invalid(what + ".shape", shape.dump(), "extents that fit into the file");
  }
  tensor.shape = shape.get<std::vector<std::int64_t>>();
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return Status::invalid(what + ".data_offsets", offsets.dump(), "two offsets");
  }
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size() || end - begin != *count * dtype_bytes(tensor.dtype)) {
    return Status::invalid(what + ".data_offsets", offsets.dump(),
                           fmt::format("{} bytes for its shape, ending by {}",
                                       *count * dtype_bytes(tensor.dtype), data.size()));
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

}  // namespace

void MappedFile::Unmap::operator()(const std::byte* data) const noexcept {
  munmap(const_cast<std::byte*>(data), size);
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (descriptor < 0 || fstat(descriptor, &info) != 0 || info.st_size <= 0) {
    if (descriptor >= 0) close(descriptor);
    return Status::invalid("file", path.string(), "one that can be read and is not empty");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (data == MAP_FAILED) return StatusCode::out_of_memory;
  return MappedFile(static_cast<const std::byte*>(data), size);
}

Status Checkpoint::add(const std::filesystem::path& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  const std::span<const std::byte> bytes = file->bytes();
  const std::string name = path.filename().string();
  std::uint64_t header_size = 0;
  if (bytes.size() >= sizeof header_size)
    std::memcpy(&header_size, bytes.data(), sizeof header_size);
  if (header_size == 0 || header_size > bytes.size() - sizeof header_size) {
    return Status::invalid(name + ": header size", static_cast<std::int64_t>(header_size),
                           fmt::format("less than the file's {} bytes", bytes.size()));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof header_size;
  const json header = json::parse(text, text + header_size, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Status::invalid(name + ": header", "not a JSON object", "one");
  const std::span<const std::byte> data = bytes.subspan(sizeof header_size + header_size);
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    Result<StoredTensor> tensor = parse_entry(entry, fmt::format("{}: {}", name, key), data);
    if (!tensor.ok()) return tensor.status();
    tensors_.insert_or_assign(key, std::move(*tensor));
  }
  files_.push_back(std::move(*file));
  return {};
}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& folder) {
  std::set<std::string> names;
  const std::filesystem::path index_path = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(index_path)) {
    std::ifstream in(index_path);
    const json index = json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
      return Status::invalid("model.safetensors.index.json: weight_map", "missing", "an object");
    }
    for (const auto& [tensor, file] : index["weight_map"].items()) {
      // Files of the folder itself: an index must not lead out of it.
      if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
        return Status::invalid("model.safetensors.index.json: weight_map." + tensor, file.dump(),
                               "a file name");
      }
      names.insert(file.get<std::string>());
    }
  } else {
    names.insert("model.safetensors");
  }
  Checkpoint checkpoint;
  for (const std::string& name : names) {
    if (Status s = checkpoint.add(folder / name); !s.ok()) return s;
  }
  return checkpoint;
}

Status Checkpoint::read(std::string_view name, std::span<const std::int64_t> shape,
                        std::span<float> out) const {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) return Status::invalid(name, "missing", "a tensor of the checkpoint");
  const StoredTensor& tensor = at->second;
  if (!std::ranges::equal(tensor.shape, shape)) {
    return Status::invalid(std::string(name) + ".shape",
                           fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
                           fmt::format("[{}], by config.json", fmt::join(shape, ", ")));
  }
  if (tensor.dtype == DType::f32) {
    std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
    return {};
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * sizeof bits, sizeof bits);
    out[i] = tensor.dtype == DType::f16 ? Float16{bits}.to_float() : BFloat16{bits}.to_float();
  }
  return {};
}

}  // namespace growpage::runtime
