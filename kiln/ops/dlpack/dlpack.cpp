#include "kiln/ops/dlpack/dlpack.hpp"

#include <dlpack/dlpack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// The memory of an exported tensor.
struct Export {
  BufferPtr buffer;
  std::array<std::int64_t, max_rank> sizes{};
  Strides strides{};
  DLManagedTensor managed{};
};

void end_export(DLManagedTensor* self) {
  const std::unique_ptr<Export> end(static_cast<Export*>(self->manager_ctx));
}

DLDataType exported_type(const TensorSpec& spec) {
  switch (spec.dtype) {
    case DType::f32:
      return {kDLFloat, 32, 1};
    case DType::f16:
      return {kDLFloat, 16, 1};
    case DType::i32:
      return {kDLInt, 32, 1};
    case DType::u32:
      return {kDLUInt, 32, 1};
    case DType::boolean:
      break;
  }
  throw DTypeError(
      fmt::format("to_dlpack: a bool of DLPack is one byte, kiln's is 32 bits; cast it to u32 "
                  "first ({})",
                  to_string(spec)));
}

void require_exportable(const AnyTensor& x) {
  if (x.tracked()) {
    throw UnsupportedError(fmt::format(
        "to_dlpack: other libraries do not know kiln's gradients; detach() the tracked tensor "
        "first ({})",
        to_string(x.spec())));
  }
  if (cpu::host(x.device().runtime()) == nullptr) {
    throw DeviceError(
        fmt::format("to_dlpack: the elements are on {}; move them with to(cpu::device()) first",
                    to_string(x.device())));
  }
}

/// An imported tensor. It goes back to its producer when this ends.
struct Import {
  DLManagedTensor* managed = nullptr;  ///< null until the import has succeeded

  Import() = default;
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;
  ~Import() {
    if (managed == nullptr || managed->deleter == nullptr) return;
    try {
      managed->deleter(managed);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a C function; there is nobody to throw it to
    }
  }
};

/// The name as the producer's users write it: "float64", "bool".
std::string to_string(const DLDataType& type) {
  constexpr std::array names{"int", "uint", "float", "opaque", "bfloat", "complex"};
  constexpr std::uint8_t boolean = 6;  // since DLPack 0.8
  const std::string lanes = type.lanes == 1 ? "" : fmt::format(" of {} lanes", type.lanes);
  if (type.code < names.size()) return fmt::format("{}{}{}", names[type.code], type.bits, lanes);
  if (type.code == boolean) return "bool" + lanes;
  return fmt::format("type code {} of {} bits{}", type.code, type.bits, lanes);
}

DType imported_type(const DLDataType& type) {
  const auto is = [&](DLDataTypeCode code, int bits) {
    return type.code == code && type.bits == bits && type.lanes == 1;
  };
  if (is(kDLFloat, 32)) return DType::f32;
  if (is(kDLFloat, 16)) return DType::f16;
  if (is(kDLInt, 32)) return DType::i32;
  if (is(kDLUInt, 32)) return DType::u32;
  throw DTypeError(
      fmt::format("from_dlpack: takes float32, float16, int32 and uint32, got {}; convert it first",
                  to_string(type)));
}

std::string_view name_of_device(std::int32_t type) {
  constexpr std::array<std::string_view, 17> names{"",        "cpu",
                                                   "cuda",    "pinned memory of cuda",
                                                   "opencl",  "",
                                                   "",        "vulkan",
                                                   "metal",   "vpi",
                                                   "rocm",    "pinned memory of rocm",
                                                   "extdev",  "managed memory of cuda",
                                                   "one api", "web gpu",
                                                   "hexagon"};
  const bool known = type > 0 && static_cast<std::size_t>(type) < names.size();
  return known && !names[static_cast<std::size_t>(type)].empty()
             ? names[static_cast<std::size_t>(type)]
             : "unknown";
}

void require_host_memory(const DLDevice& device) {
  std::int32_t type = 0;  // a newer library may send a number that is not in the enumeration
  std::memcpy(&type, &device.device_type, sizeof(type));
  if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost) return;
  throw DeviceError(
      fmt::format("from_dlpack: takes memory of the host: device type {} (cpu), {} or {} (pinned); "
                  "got {} ({}); copy it to the host first",
                  int{kDLCPU}, int{kDLCUDAHost}, int{kDLROCMHost}, type, name_of_device(type)));
}

cpu::CpuRuntime& host_of(const Device& device) {
  cpu::CpuRuntime* host = cpu::host(device.runtime());
  if (host == nullptr) {
    throw DeviceError(
        fmt::format("from_dlpack: takes arrays onto cpu::device(), not onto {}; move the tensor "
                    "there with to()",
                    to_string(device)));
  }
  return *host;
}

Shape shape_of(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > max_rank)
    throw ShapeError(
        fmt::format("from_dlpack: the rank must be 0 to {}, got {}", max_rank, t.ndim));
  if (t.ndim == 0) return {};
  if (t.shape == nullptr) throw ShapeError("from_dlpack: the array has no shape (null)");
  const std::span<const std::int64_t> sizes(t.shape, static_cast<std::size_t>(t.ndim));
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      throw ShapeError(
          fmt::format("from_dlpack: sizes must not be negative, got [{}]", fmt::join(sizes, ", ")));
    }
  }
  return Shape(sizes);
}

Layout layout_of(const DLTensor& t) {
  const Layout dense = Layout::dense(shape_of(t));
  if (t.strides == nullptr || dense.shape.elements() == 0) return dense;
  const std::span<const std::int64_t> strides(t.strides, dense.shape.size());
  Layout layout{.shape = dense.shape};
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (t.shape[axis] == 1) continue;  // producers write anything there
    if (strides[axis] < 0) {
      throw ShapeError(fmt::format(
          "from_dlpack: strides must not be negative, got [{}]; copy the array first (shape {})",
          fmt::join(strides, ", "), to_string(dense.shape)));
    }
    layout.strides[axis] = strides[axis];
  }
  return layout.is_dense() ? dense : layout;
}

/// From the first element to the end of the furthest one.
std::uint64_t bytes_of(const Layout& layout, DType dtype) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  const std::optional<std::int64_t> reach = layout.reach();
  if (!reach || *reach > most) {
    throw ShapeError(
        fmt::format("from_dlpack: strides [{}] of {} lead past 2^63 bytes",
                    fmt::join(std::span(layout.strides).first(layout.shape.size()), ", "),
                    to_string(layout.shape)));
  }
  return static_cast<std::uint64_t>(*reach) * size_of(dtype);
}

std::byte* data_of(const DLTensor& t, DType dtype, const Shape& shape) {
  if (shape.elements() == 0) return nullptr;  // nobody reads it
  if (t.data == nullptr) {
    throw UnsupportedError(
        fmt::format("from_dlpack: the array {} has no elements (null)", to_string(shape)));
  }
  std::byte* data = static_cast<std::byte*>(t.data) + t.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) != 0) {  // NOLINT
    throw UnsupportedError(fmt::format(
        "from_dlpack: the elements of {} lie at {}, which is no multiple of their {} bytes; copy "
        "the array first",
        to_string(TensorSpec{shape, dtype}), static_cast<const void*>(data), size_of(dtype)));
  }
  return data;
}

}  // namespace

DLManagedTensor* to_dlpack(const AnyTensor& x) {
  require_exportable(x);
  const DLDataType type = exported_type(x.spec());
  const RawTensor raw = x.value().raw();
  raw.buffer->freeze();
  auto out = std::make_unique<Export>();
  out->buffer = raw.buffer;
  std::ranges::copy(raw.shape(), out->sizes.begin());
  out->strides = raw.layout.strides;
  std::byte* data = cpu::host(*raw.runtime)->data_of("to_dlpack", raw.buffer);
  if (raw.shape().elements() != 0)
    data += raw.layout.offset * static_cast<std::int64_t>(size_of(raw.dtype));
  // The offset goes into the pointer, because some libraries that take it forget byte_offset.
  out->managed.dl_tensor = {.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = raw.shape().rank(),
                            .dtype = type,
                            .shape = out->sizes.data(),
                            .strides = out->strides.data(),
                            .byte_offset = 0};
  out->managed.manager_ctx = out.get();
  out->managed.deleter = end_export;
  return &out.release()->managed;
}

AnyTensor from_dlpack(DLManagedTensor* managed, const Device& device) {
  if (managed == nullptr) throw UnsupportedError("from_dlpack: no array was given (null)");
  cpu::CpuRuntime& host = host_of(device);
  const DLTensor& t = managed->dl_tensor;
  require_host_memory(t.device);
  const DType dtype = imported_type(t.dtype);
  const Layout layout = layout_of(t);
  dispatch::require_countable("from_dlpack", {layout.shape, dtype});
  const std::uint64_t bytes = bytes_of(layout, dtype);
  const auto owner = std::make_shared<Import>();
  const BufferPtr buffer = host.adopt(data_of(t, dtype, layout.shape), bytes, owner);
  AnyTensor out(Value({device.shared_runtime(), buffer, dtype, layout}), device);
  owner->managed = managed;
  return out;
}

}  // namespace kiln
