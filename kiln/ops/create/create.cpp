#include "kiln/ops/create/create.hpp"

#include <fmt/format.h>

#include <cmath>

#include "arange_wgsl.hpp"
#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"
#include "random_wgsl.hpp"

namespace kiln {
namespace {

struct Random {
  static constexpr std::string_view name = "random";
  static constexpr std::array<const char*, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  DType dtype;
  std::uint64_t seed;
  bool normal;
  Param offset;
  Param scale;

  TensorSpec output() const {
    if (!is_float(dtype))
      throw DTypeError(fmt::format("random: makes f32 or f16, asked for {}", to_string(dtype)));
    return {shape, dtype};
  }
  webgpu::Launch webgpu_kernel(const Operand& out) const {
    // 1 - u is never 0, so its logarithm is finite.
    const char* sample =
        normal ? "sqrt(-2.0f * log(1.0f - u)) * cos(6.28318530717958648f * v)" : "u";
    return {.source = KernelSource::wgsl(random_wgsl).define("sample", sample),
            .workgroup = {64, 1, 1},
            .params = {{"count", out.shape().elements()},
                       {"seed_low", static_cast<std::int64_t>(seed & 0xffff'ffffU)},
                       {"seed_high", static_cast<std::int64_t>(seed >> 32U)},
                       {"offset", offset},
                       {"scale", scale}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1},
            .trusted = true};
  }
};

struct Arange {
  static constexpr std::string_view name = "arange";
  static constexpr std::array<const char*, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  DType dtype;
  Param start;
  Param step;

  TensorSpec output() const {
    if (dtype == DType::boolean)
      throw DTypeError("arange: makes f32, f16, i32 or u32, asked for bool");
    return {shape, dtype};
  }
  webgpu::Launch webgpu_kernel(const Operand& out) const {
    const char* value = is_float(dtype) ? "Elem(params.start + params.step * f32(i))" : "Elem(i)";
    return {.source = KernelSource::wgsl(arange_wgsl).define("value", value),
            .workgroup = {64, 1, 1},
            .params = {{"count", out.shape().elements()}, {"start", start}, {"step", step}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1},
            .trusted = true};
  }
};
/// Integers take their own arithmetic: f32 counts to 2^24 only.
struct StartAndStep {
  static constexpr std::string_view name = "arange";
  Param start;
  Param step;
  Expr body(Expr index) const { return index * step + start; }
};
static_assert(Extension<Random> && Extension<Arange>);

/// Elements as they are stored: a bool is a word.
template <class Stored>
AnyTensor upload(const Stored& values, const TensorSpec& spec, const Device& device) {
  if (static_cast<std::int64_t>(values.size()) != spec.shape.elements()) {
    throw ShapeError(
        fmt::format("tensor: {} values given for shape {}", values.size(), to_string(spec.shape)));
  }
  const RawTensor raw = dispatch::allocate("tensor", device.shared_runtime(), spec);
  device.runtime().write(raw.buffer, 0, std::as_bytes(std::span(values)));
  return {Value(raw), device};
}

}  // namespace

template <class T>
AnyTensor tensor(std::span<const T> values, const Shape& shape, const Device& device) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<std::uint32_t> words(values.begin(), values.end());
    return upload(words, {shape, DType::boolean}, device);
  } else {
    return upload(values, {shape, dtype_of<T>}, device);
  }
}
template AnyTensor tensor(std::span<const float>, const Shape&, const Device&);
template AnyTensor tensor(std::span<const float16>, const Shape&, const Device&);
template AnyTensor tensor(std::span<const std::int32_t>, const Shape&, const Device&);
template AnyTensor tensor(std::span<const std::uint32_t>, const Shape&, const Device&);
template AnyTensor tensor(std::span<const bool>, const Shape&, const Device&);

template <>
AnyTensor tensor(const std::vector<bool>& values, const Shape& shape, const Device& device) {
  const std::vector<std::uint32_t> words(values.begin(), values.end());
  return upload(words, {shape, DType::boolean}, device);
}

AnyTensor from_raw(const RawTensor& raw, const Device& device) {
  if (raw.buffer == nullptr) throw Error("from_raw: the tensor is an empty handle");
  if (raw.runtime != device.shared_runtime()) {
    throw DeviceError(fmt::format("from_raw: the elements are on {}, not on {}",
                                  raw.runtime->adapter(), to_string(device)));
  }
  return {Value(raw), device};
}

AnyTensor full(const Shape& shape, double value, const Device& device, DType dtype) {
  return {full(device, {shape, dtype}, value), device};
}
AnyTensor zeros(const Shape& shape, const Device& device, DType dtype) {
  return full(shape, 0, device, dtype);
}
AnyTensor ones(const Shape& shape, const Device& device, DType dtype) {
  return full(shape, 1, device, dtype);
}

AnyTensor arange(std::int64_t count, const Device& device, DType dtype, double start, double step) {
  const AnyTensor out = apply(Arange{Shape{count}, dtype, {start}, {step}}, device);
  return is_float(dtype) ? out : apply(StartAndStep{{start}, {step}}, out);
}

AnyTensor random_uniform(const Shape& shape, std::uint64_t seed, const Device& device, double low,
                         double high, DType dtype) {
  return apply(Random{shape, dtype, seed, false, {low}, {high - low}}, device);
}

AnyTensor random_normal(const Shape& shape, std::uint64_t seed, const Device& device, double mean,
                        double deviation, DType dtype) {
  return apply(Random{shape, dtype, seed, true, {mean}, {deviation}}, device);
}

}  // namespace kiln
