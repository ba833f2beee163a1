#include "kiln/ops/create/create.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "arange_wgsl.hpp"
#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"
#include "random_wgsl.hpp"

namespace kiln {
namespace {

/// Sets every element of type T to f(its number).
template <class T, class F>
void each_of(const cpu::Output& out, const F& f) {
  const std::span<T> to = out.dense<T>();
  constexpr std::int64_t grain = 8192;
  cpu::parallel_for(static_cast<std::int64_t>(to.size()), grain,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i)
                        to[static_cast<std::size_t>(i)] = T(f(i));
                    });
}
/// The same for an output of f32 or f16.
template <class F>
void each(const cpu::Output& out, const F& f) {
  cpu::with_float(out.dtype(), [&](auto element) { each_of<decltype(element)>(out, f); });
}

/// Threefry-2x32 with 20 rounds, as in random.wgsl: the rotations and the key schedule of the
/// paper.
std::array<std::uint32_t, 2> threefry(const std::array<std::uint32_t, 2>& counter,
                                      const std::array<std::uint32_t, 2>& key) {
  constexpr std::array rotations{13, 15, 26, 6, 17, 29, 16, 24};
  const std::array keys{key[0], key[1], 0x1bd11bdaU ^ key[0] ^ key[1]};
  std::array x{counter[0] + key[0], counter[1] + key[1]};
  for (std::uint32_t round = 0; round < 20; ++round) {
    x[0] += x[1];
    x[1] = std::rotl(x[1], rotations[round % 8]) ^ x[0];
    if (round % 4 != 3) continue;
    const std::uint32_t step = round / 4 + 1;
    x[0] += keys[step % 3];
    x[1] += keys[(step + 1) % 3] + step;
  }
  return x;
}

[[noreturn]] void refuse_random(std::string_view op, DType dtype) {
  throw DTypeError(fmt::format("{}: makes f32 or f16, asked for {}", op, to_string(dtype)));
}

/// The float next to a finite `x`, above or below.
float neighbour(float x, bool above) { return std::nextafter(x, above ? HUGE_VALF : -HUGE_VALF); }
float16 neighbour(float16 x, bool above) {
  const bool negative = std::signbit(static_cast<float>(x));
  const auto bits = static_cast<std::uint16_t>(x.bits() & 0x7fffU);
  if (bits == 0) return float16::from_bits(above ? 0x0001 : 0x8001);
  return float16::from_bits(static_cast<std::uint16_t>(x.bits() + (above == negative ? -1 : 1)));
}

/// The least and the largest number of T in [low, high).
template <class T>
std::pair<double, double> numbers_between_as(double low, double high) {
  const auto value = [](T x) { return static_cast<double>(static_cast<float>(x)); };
  auto least = T(static_cast<float>(low));
  if (value(least) < low) least = neighbour(least, true);
  auto most = T(static_cast<float>(high));
  if (value(most) >= high) most = neighbour(most, false);
  return {value(least), value(most)};
}

/// The same for a dtype. Throws DTypeError if the bounds are beyond its finite numbers, or if it
/// has no number between them.
std::pair<double, double> numbers_between(double low, double high, DType dtype) {
  const double largest = dtype == DType::f16 ? 65504 : std::numeric_limits<float>::max();
  const auto refuse = [&](std::string_view why) {
    throw DTypeError(
        fmt::format("random_uniform: {} [{}, {}) {}", to_string(dtype), low, high, why));
  };
  if (!(std::abs(low) <= largest && std::abs(high) <= largest))
    refuse("reaches beyond the dtype's finite numbers");
  const auto between = dtype == DType::f16 ? numbers_between_as<float16>(low, high)
                                           : numbers_between_as<float>(low, high);
  if (!(low < high && between.first <= between.second)) refuse("has no number of the dtype");
  return between;
}

/// 24 bits, so that every result is exact in f32 and below 1.
float unit(std::uint32_t bits) { return static_cast<float>(bits >> 8U) * 0x1p-24F; }

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
  Param least;  // a result outside of these becomes the nearer one
  Param most;

  TensorSpec output() const {
    if (!is_float(dtype)) refuse_random(normal ? "random_normal" : "random_uniform", dtype);
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
                       {"scale", scale},
                       {"least", least},
                       {"most", most}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1},
            .trusted = true};
  }
  void cpu_kernel(const cpu::Output& out) const {
    const std::array key{static_cast<std::uint32_t>(seed & 0xffff'ffffU),
                         static_cast<std::uint32_t>(seed >> 32U)};
    const auto from = static_cast<float>(offset.value());
    const auto by = static_cast<float>(scale.value());
    const auto low = static_cast<float>(least.value());
    const auto high = static_cast<float>(most.value());
    each(out, [&](std::int64_t i) {
      const auto bits = threefry({static_cast<std::uint32_t>(i), 0}, key);
      const float u = unit(bits[0]);
      const float sample =
          normal ? std::sqrt(-2 * std::log(1 - u)) * std::cos(6.28318530717958648F * unit(bits[1]))
                 : u;
      // In halves, because the sum of both may be out of range even if the result is not.
      const float half = from * 0.5F + by * sample;
      return std::clamp(half + half, low, high);
    });
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
  void cpu_kernel(const cpu::Output& out) const {
    const auto first = static_cast<float>(start.value());
    const auto by = static_cast<float>(step.value());
    if (is_float(dtype)) {
      each(out, [&](std::int64_t i) { return first + by * static_cast<float>(i); });
    } else if (dtype == DType::i32) {
      each_of<std::int32_t>(out, [](std::int64_t i) { return static_cast<std::int32_t>(i); });
    } else {
      each_of<std::uint32_t>(out, [](std::int64_t i) { return static_cast<std::uint32_t>(i); });
    }
  }
};
/// Integers have an operation of their own, since f32 counts to 2^24 only.
struct StartAndStep {
  static constexpr std::string_view name = "arange";
  Param start;
  Param step;
  Expr body(Expr index) const { return index * step + start; }
};
static_assert(Extension<Random> && Extension<Arange>);

}  // namespace

AnyTensor detail::upload(const void* elements, std::size_t count, const TensorSpec& spec,
                         const Device& device) {
  if (static_cast<std::int64_t>(count) != spec.shape.elements()) {
    throw ShapeError(
        fmt::format("tensor: {} values given for shape {}", count, to_string(spec.shape)));
  }
  const RawTensor raw = dispatch::allocate("tensor", device.shared_runtime(), spec);
  const auto write = [&](std::span<const std::byte> bytes) {
    device.runtime().write(raw.buffer, 0, bytes);
  };
  if (spec.dtype == DType::boolean) {  // stored as words
    const std::span bools(static_cast<const unsigned char*>(elements), count);
    const std::vector<std::uint32_t> words(bools.begin(), bools.end());
    write(std::as_bytes(std::span(words)));
  } else {
    write({static_cast<const std::byte*>(elements), count * size_of(spec.dtype)});
  }
  return {Value(raw), device};
}

void detail::refuse_ragged(std::size_t expected, std::size_t got) {
  throw ShapeError(
      fmt::format("tensor: lists at one depth must have one length, got {} and {}", expected, got));
}

AnyTensor from_raw(const RawTensor& raw) {
  if (raw.runtime == nullptr) dispatch::refuse_empty("from_raw");
  return from_raw(raw, Device(raw.runtime));
}

AnyTensor from_raw(const RawTensor& raw, const Device& device) {
  if (raw.buffer == nullptr || raw.runtime == nullptr) dispatch::refuse_empty("from_raw");
  if (raw.runtime != device.shared_runtime()) {
    throw DeviceError(fmt::format("from_raw: the elements are on {}, not on {}",
                                  raw.runtime->adapter(), to_string(device)));
  }
  dispatch::require_countable("from_raw", raw.spec());
  dispatch::require_inside([] { return "from_raw"; }, raw);
  return {Value(raw), device};
}

AnyTensor full(const Shape& shape, Number value, DType dtype, const Device& device) {
  return {full(device, {shape, dtype}, value), device};
}
AnyTensor full_like(const AnyTensor& x, Number value) {
  return full(x.shape(), value, x.dtype(), x.device());
}

AnyTensor arange(Integer count, const Steps& steps, DType dtype, const Device& device) {
  for (const double number : {steps.start, steps.step})
    dispatch::require_number("arange", number, dtype);
  const AnyTensor out = apply(Arange{Shape{count}, dtype, {steps.start}, {steps.step}}, device);
  return is_float(dtype) ? out : apply(StartAndStep{{steps.start}, {steps.step}}, out);
}

AnyTensor random_uniform(const Shape& shape, Seed seed, const Interval& interval, DType dtype,
                         const Device& device) {
  if (!is_float(dtype)) refuse_random("random_uniform", dtype);
  const double low = interval.low;
  const double high = interval.high;
  const auto [least, most] = numbers_between(low, high, dtype);
  const Random op{shape, dtype, seed.value(), false, {low}, {high / 2 - low / 2}, {least}, {most}};
  return apply(op, device);
}

AnyTensor random_normal(const Shape& shape, Seed seed, const Normal& normal, DType dtype,
                        const Device& device) {
  if (std::isnan(normal.mean) || std::isnan(normal.deviation)) {
    throw Error(fmt::format("random_normal: the mean {} and the deviation {} must be numbers",
                            double{normal.mean}, double{normal.deviation}));
  }
  constexpr double inf = std::numeric_limits<double>::infinity();
  return apply(
      Random{
          shape, dtype, seed.value(), true, {normal.mean}, {normal.deviation / 2}, {-inf}, {inf}},
      device);
}

}  // namespace kiln
