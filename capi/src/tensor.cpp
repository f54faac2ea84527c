// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <string>
#include <string_view>

#include "convert.hpp"
#include "defaults.hpp"
#include "error.hpp"
#include "structs.hpp"

namespace growpage::capi {

namespace {

/// The furthest element of a tensor must have a 64-bit offset, in bytes too.
bool fits(std::span<const std::int64_t> shape, const std::int64_t* strides) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t extent = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last)) {
      return false;
    }
  }
  return last <= (std::int64_t{1} << 56);
}

}  // namespace

Status read_tensor(const char* name, const growpage_tensor* in,
                   std::span<const std::int64_t> extents, bool layered, Tensor& out) {
  growpage_tensor tensor = default_tensor();
  if (Status s = read_required("growpage_tensor", in, tensor); !s.ok()) return s;
  // Texts are built for refusals only: this runs in every step.
  const auto refuse = [name](const char* field, std::int64_t axis, std::int64_t value,
                             const std::string& allowed) {
    std::string argument(name);
    argument += field;
    if (axis >= 0) argument.append("[").append(std::to_string(axis)).append("]");
    return Status::invalid(argument, value, allowed);
  };
  const auto ndim = static_cast<std::int32_t>(extents.size());
  Status s;
  if (tensor.ndim != ndim) return refuse(".ndim", -1, tensor.ndim, std::to_string(ndim));
  if (!read_enum(s, "growpage_tensor.dtype", tensor.dtype, DType::bf16, out.dtype)) return s;
  if ((tensor.data == nullptr) == (tensor.layer_data == nullptr) ||
      (tensor.layer_data != nullptr && !layered)) {
    return Status::invalid(name, "data, layer_data: none, both or the wrong one",
                           layered ? "either data or layer_data" : "data without layer_data");
  }
  // With a pointer for each layer the first axis is the array of pointers: its stride is not read.
  const std::int32_t first = tensor.layer_data != nullptr ? 1 : 0;
  bool packed = true;
  for (std::int32_t i = first; i < ndim; ++i) packed = packed && tensor.strides[i] == 0;
  std::int64_t inner = 1;
  for (std::int32_t i = ndim; i-- > 0;) {
    const std::int64_t extent = tensor.shape[i];
    const std::int64_t stride = i < first ? 0 : tensor.strides[i];
    if (extents[i] >= 0 ? extent != extents[i] : extent < 1 || extent > std::int64_t{1} << 40) {
      return refuse(".shape", i, extent,
                    extents[i] >= 0 ? std::to_string(extents[i]) : "1 to 2^40");
    }
    if (stride < (packed || extent == 1 || i < first ? 0 : 1) || stride > std::int64_t{1} << 56) {
      return refuse(".strides", i, stride, "1 to 2^56, or 0 everywhere for packed");
    }
    out.shape[i] = extent;
    out.strides[i] = packed && i >= first ? inner : stride;
    if (packed && i >= first && __builtin_mul_overflow(inner, extent, &inner)) {
      return refuse(".shape", i, extent, "a tensor in memory");
    }
  }
  if (out.shape[ndim - 1] > 1 && out.strides[ndim - 1] != 1) {
    return refuse(".strides", ndim - 1, out.strides[ndim - 1], "1: the last axis is contiguous");
  }
  if (!fits({out.shape, extents.size()}, out.strides)) {
    return refuse(".strides", 0, out.strides[0], "a tensor in memory");
  }
  out.data = tensor.data;
  out.layer_data = tensor.layer_data;
  return {};
}

Status read_kv_tensor(const char* name, const growpage_tensor* in, const CacheShape& shape,
                      std::int32_t dim, std::int64_t pages, bool host, KvTensor& out,
                      std::int64_t& out_pages) {
  const std::int64_t extents[] = {shape.layers, -1, shape.kv_heads, shape.page_size, dim};
  Tensor tensor;
  if (Status s = read_tensor(name, in, extents, true, tensor); !s.ok()) return s;
  Status s;
  const std::string argument = std::string(name).append(".shape[1]");
  if (!detail::require_range(s, argument, tensor.shape[1], pages, 0x7fffffff)) return s;
  for (std::int32_t l = 0; host && tensor.layer_data != nullptr && l < shape.layers; ++l) {
    if (!detail::require_not_null(s, "growpage_tensor.layer_data", tensor.layer_data[l])) return s;
  }
  out.base = tensor.data;
  out.layer_base = tensor.layer_data;
  out.layout = {tensor.strides[0], tensor.strides[1], tensor.strides[2], tensor.strides[3]};
  out.dtype = tensor.dtype;
  out_pages = tensor.shape[1];
  return {};
}

growpage_tensor to_c_tensor(const KvTensor& tensor, const CacheShape& shape, std::int32_t dim,
                            std::int64_t pages) noexcept {
  growpage_tensor out = default_tensor();
  out.data = tensor.base;
  out.layer_data = tensor.layer_base;
  out.dtype = static_cast<std::int32_t>(tensor.dtype);
  out.ndim = 5;
  const std::int64_t extents[] = {shape.layers, pages, shape.kv_heads, shape.page_size, dim};
  const std::int64_t strides[] = {tensor.layout.layer_stride, tensor.layout.page_stride,
                                  tensor.layout.head_stride, tensor.layout.token_stride, 1};
  for (std::int32_t i = 0; i < 5; ++i) {
    out.shape[i] = extents[i];
    out.strides[i] = strides[i];
  }
  return out;
}

namespace {

Status dlpack_dtype(const growpage_dl_tensor& in, std::int32_t& out) {
  constexpr std::uint8_t dl_float = 2;
  constexpr std::uint8_t dl_bfloat = 4;
  const auto is = [&](std::uint8_t code, std::uint8_t bits) {
    return in.dtype.code == code && in.dtype.bits == bits && in.dtype.lanes == 1;
  };
  if (is(dl_float, 32)) {
    out = GROWPAGE_F32;
  } else if (is(dl_float, 16)) {
    out = GROWPAGE_F16;
  } else if (is(dl_bfloat, 16)) {
    out = GROWPAGE_BF16;
  } else {
    return Status::error(StatusCode::unsupported, "DLTensor.dtype",
                         "code " + std::to_string(in.dtype.code) + ", bits " +
                             std::to_string(in.dtype.bits) + ", lanes " +
                             std::to_string(in.dtype.lanes),
                         "f32, f16 or bf16");
  }
  return {};
}

Status from_dlpack(const growpage_dl_tensor& in, const char* axes, const char* order,
                   growpage_tensor* out) {
  constexpr std::int32_t dl_cpu = 1;
  Status s;
  if (!detail::require_not_null(s, "axes", axes) || !detail::require_not_null(s, "order", order)) {
    return s;
  }
  if (s = check_output("growpage_tensor", out); !s.ok()) return s;
  if (in.device.type != dl_cpu) {
    return Status::error(StatusCode::unsupported, "DLTensor.device.type",
                         std::to_string(in.device.type), "1 (CPU)");
  }
  growpage_tensor tensor = default_tensor();
  if (s = dlpack_dtype(in, tensor.dtype); !s.ok()) return s;
  const std::string_view from(axes);
  const std::string_view to(order);
  if (!detail::require_range(s, "DLTensor.ndim", in.ndim, 1, GROWPAGE_MAX_DIMS) ||
      !detail::require_range(s, "axes", static_cast<std::int64_t>(from.size()), in.ndim, in.ndim) ||
      !detail::require_range(s, "order", static_cast<std::int64_t>(to.size()), in.ndim,
                             GROWPAGE_MAX_DIMS) ||
      !detail::require_not_null(s, "DLTensor.data", in.data) ||
      !detail::require_not_null(s, "DLTensor.shape", in.shape)) {
    return s;
  }
  const auto unique = [](std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.find(text[i], i + 1) != std::string_view::npos) return false;
    }
    return true;
  };
  if (!unique(from)) return Status::invalid("axes", from, "every letter once");
  if (!unique(to)) return Status::invalid("order", to, "every letter once");
  std::int64_t packed[GROWPAGE_MAX_DIMS];
  std::int64_t inner = 1;
  for (std::int32_t i = in.ndim; i-- > 0;) {
    packed[i] = inner;
    if (!detail::require_range(s, "DLTensor.shape", in.shape[i], 1, std::int64_t{1} << 40)) {
      return s;
    }
    if (__builtin_mul_overflow(inner, in.shape[i], &inner)) {
      return Status::invalid("DLTensor.shape", in.shape[i], "a tensor in memory");
    }
  }
  for (const char letter : from) {
    if (to.find(letter) == std::string_view::npos) {
      return Status::invalid("order", to, "every letter of axes (" + std::string(from) + ")");
    }
  }
  tensor.ndim = static_cast<std::int32_t>(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t axis = from.find(to[i]);
    const bool there = axis != std::string_view::npos;
    tensor.shape[i] = there ? in.shape[axis] : 1;
    // An axis of extent 1 is never stepped along; a nonzero stride says "not packed".
    tensor.strides[i] = !there ? inner : in.strides != nullptr ? in.strides[axis] : packed[axis];
    if (tensor.shape[i] == 1) tensor.strides[i] = inner;
  }
  tensor.data = static_cast<char*>(in.data) + in.byte_offset;
  write_struct(out, tensor);
  return {};
}

}  // namespace

}  // namespace growpage::capi

using namespace growpage;
using namespace growpage::capi;

extern "C" {

growpage_status growpage_tensor_from_dlpack(const growpage_dl_managed_tensor* managed,
                                            const char* axes, const char* order,
                                            growpage_tensor* tensor) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!growpage::detail::require_not_null(s, "DLManagedTensor", managed)) return s;
    return from_dlpack(managed->tensor, axes, order, tensor);
  });
}

growpage_status growpage_tensor_from_dlpack_versioned(
    const growpage_dl_managed_tensor_versioned* managed, const char* axes, const char* order,
    int32_t writable, growpage_tensor* tensor) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!growpage::detail::require_not_null(s, "DLManagedTensorVersioned", managed) ||
        !growpage::detail::require_range(s, "writable", writable, 0, 1)) {
      return s;
    }
    if (managed->version.major != 1) {
      return Status::error(StatusCode::unsupported, "DLManagedTensorVersioned.version.major",
                           std::to_string(managed->version.major), "1");
    }
    if (writable != 0 && (managed->flags & 1U) != 0) {
      return Status::invalid("DLManagedTensorVersioned.flags", "read only", "a writable tensor");
    }
    return from_dlpack(managed->tensor, axes, order, tensor);
  });
}
}
