// Floats are added up as integers, so that the order of the additions does not matter. First the
// largest exponent of each place is found. Then each value becomes an integer of 64 bits relative
// to that, in two words: the larger exponent takes the upper bits that no carry needs. At last sums
// become floats again.
#include "kiln/tensor/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"
#include "scatter_digits_wgsl.hpp"
#include "scatter_integers_wgsl.hpp"
#include "scatter_round_wgsl.hpp"
#include "scatter_tops_wgsl.hpp"

namespace kiln::detail {
namespace {

constexpr std::int64_t workgroup = 256;
constexpr std::uint32_t not_finite = 255;  ///< an exponent
/// What a sum of values that are not finite is made of.
constexpr std::uint32_t has_nan = 1;
constexpr std::uint32_t has_infinity = 2;
constexpr std::uint32_t has_negative_infinity = 4;

/// A launch with a thread for each of `count` elements.
webgpu::Launch launch_of(KernelSource source, std::int64_t count) {
  return {.source = std::move(source),
          .workgroup = {workgroup, 1, 1},
          .params = {{"count", count}},
          .grid = {ceil_div(count, workgroup), 1, 1},
          .trusted = true};
}

/// The same for kernels that add to their results.
webgpu::Launch adding_launch_of(KernelSource source, const Operand& values, std::int64_t size) {
  webgpu::Launch launch = launch_of(std::move(source), values.shape().elements());
  launch.params.emplace_back("size", size);
  launch.access = OutputAccess::atomic;
  launch.zeroed = true;
  return launch;
}

/// Calls f(number of a value, its place) for all values that have a place below `size`. All those
/// of one place are met by one thread.
template <class F>
void each_placed(const cpu::Input& places, std::int64_t size, const F& f) {
  const std::span<const std::uint32_t> all = places.dense<std::uint32_t>();
  const std::int64_t grain = std::max<std::int64_t>(ceil_div(size, cpu::threads()), 256);
  cpu::parallel_for(size, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] >= begin && all[i] < end) f(i, std::size_t{all[i]});
    }
  });
}

/// Calls f(values as floats, by number).
template <class F>
void with_floats(const cpu::Input& values, const F& f) {
  cpu::with_float(values.dtype(), [&](auto element) {
    const auto all = values.dense<decltype(element)>();
    f([=](std::size_t i) { return static_cast<float>(all[i]); });
  });
}

std::uint32_t exponent_of(std::uint32_t bits) { return bits >> 23 & 0xff; }

/// Bits below the last of the largest value of a place, such that no sum of `count` values
/// overflows.
std::int64_t spare_bits(std::int64_t count) {
  const std::int64_t most = std::max<std::int64_t>(count, 1) - 1;
  return 38 - static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(most)));
}

/// What a value adds to the sum of a place whose largest exponent is `top`.
std::uint64_t term(std::uint32_t bits, std::uint32_t top, std::int64_t spare) {
  const std::uint32_t exponent = exponent_of(bits);
  const std::uint64_t digits = (bits & 0x7fffff) | (exponent > 0 ? 0x800000 : 0);
  const std::int64_t shift = spare - (std::int64_t{top} - std::max<std::int64_t>(exponent, 1));
  std::uint64_t size = 0;
  if (shift >= 0) {
    size = digits << shift;
  } else if (shift >= -24) {
    size = (digits + (std::uint64_t{1} << (-shift - 1))) >> -shift;
  }
  return (bits >> 31) != 0 ? 0 - size : size;
}

float float_of(std::uint64_t sum, std::uint32_t top, std::int64_t spare) {
  if (top == not_finite) {
    constexpr std::uint64_t both = has_infinity | has_negative_infinity;
    if ((sum & has_nan) != 0 || (sum & both) == both) return std::bit_cast<float>(0x7fc00000U);
    return std::bit_cast<float>((sum & has_infinity) != 0 ? 0x7f800000U : 0xff800000U);
  }
  const bool negative = sum >> 63 != 0;
  std::uint64_t size = negative ? 0 - sum : sum;
  if (size == 0) return 0;
  const int zeros = std::countl_zero(size);
  size <<= zeros;
  const std::int64_t exponent = std::int64_t{top} + 40 - spare - zeros;
  const std::int64_t drop = 40 + std::max<std::int64_t>(1 - exponent, 0);
  std::uint64_t bits = 0x7f800000;
  if (exponent < not_finite) {
    const std::uint64_t keep = drop < 64 ? size >> drop : 0;
    const std::uint64_t rest = drop < 64 ? size << (64 - drop) : drop == 64 ? size : 0;
    constexpr std::uint64_t half = std::uint64_t{1} << 63;
    const bool up = rest > half || (rest == half && keep % 2 == 1);
    const auto before = static_cast<std::uint64_t>(std::max<std::int64_t>(exponent - 1, 0));
    bits = std::min<std::uint64_t>((before << 23) + keep + (up ? 1 : 0), 0x7f800000);
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) | (negative ? 0x80000000U : 0));
}

/// The largest exponent of each place; 0 where there is nothing but zeros.
struct ScatterTops {
  static constexpr std::string_view name = "scatter_tops";
  static constexpr std::array inputs = {"places", "values"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;

  TensorSpec output(const TensorSpec&, const TensorSpec&) const { return {shape, DType::u32}; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& values, const Operand& out) {
    return adding_launch_of(KernelSource::wgsl(scatter_tops_wgsl), values, out.shape().elements());
  }
  static void cpu_kernel(const cpu::Input& places, const cpu::Input& values,
                         const cpu::Output& out) {
    cpu::zero(out);
    const std::span<std::uint32_t> tops = out.dense<std::uint32_t>();
    with_floats(values, [&](const auto& value) {
      each_placed(places, out.shape().elements(), [&](std::size_t i, std::size_t place) {
        const auto bits = std::bit_cast<std::uint32_t>(value(i));
        if (bits << 1 != 0) tops[place] = std::max({tops[place], exponent_of(bits), 1U});
      });
    });
  }
};

/// The sums as integers: the lower and the upper word of each place.
struct ScatterDigits {
  static constexpr std::string_view name = "scatter_digits";
  static constexpr std::array inputs = {"places", "values", "tops"};
  using layers = Layers<Cube, Fusion>;

  static TensorSpec output(const TensorSpec&, const TensorSpec&, const TensorSpec& tops) {
    return {{tops.shape.elements(), 2}, DType::u32};
  }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& values, const Operand& tops,
                                      const Operand&) {
    webgpu::Launch launch =
        adding_launch_of(KernelSource::wgsl(scatter_digits_wgsl), values, tops.shape().elements());
    launch.params.emplace_back("spare", spare_bits(values.shape().elements()));
    return launch;
  }
  static void cpu_kernel(const cpu::Input& places, const cpu::Input& values, const cpu::Input& tops,
                         const cpu::Output& out) {
    cpu::zero(out);
    const std::span<std::uint32_t> words = out.dense<std::uint32_t>();
    const std::span<const std::uint32_t> top = tops.dense<std::uint32_t>();
    const std::int64_t spare = spare_bits(values.shape().elements());
    with_floats(values, [&](const auto& value) {
      each_placed(places, out.dim(0), [&](std::size_t i, std::size_t place) {
        const auto bits = std::bit_cast<std::uint32_t>(value(i));
        std::uint32_t& low = words[2 * place];
        std::uint32_t& high = words[2 * place + 1];
        if (top[place] == not_finite) {
          if (exponent_of(bits) != not_finite) return;
          const bool nan = (bits & 0x7fffff) != 0;
          low |= nan ? has_nan : bits >> 31 != 0 ? has_negative_infinity : has_infinity;
          return;
        }
        if (bits << 1 == 0) return;
        const std::uint64_t sum = (std::uint64_t{high} << 32 | low) + term(bits, top[place], spare);
        low = static_cast<std::uint32_t>(sum);
        high = static_cast<std::uint32_t>(sum >> 32);
      });
    });
  }
};

/// The sums of `count` values as floats.
struct ScatterRound {
  static constexpr std::string_view name = "scatter_round";
  static constexpr std::array inputs = {"digits", "tops"};
  using layers = Layers<Cube, Fusion>;
  std::int64_t count;

  static TensorSpec output(const TensorSpec&, const TensorSpec& tops) {
    return {tops.shape, DType::f32};
  }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& tops, const Operand&) const {
    webgpu::Launch launch =
        launch_of(KernelSource::wgsl(scatter_round_wgsl), tops.shape().elements());
    launch.params.emplace_back("spare", spare_bits(count));
    return launch;
  }
  void cpu_kernel(const cpu::Input& digits, const cpu::Input& tops, const cpu::Output& out) const {
    const std::span<const std::uint32_t> words = digits.dense<std::uint32_t>();
    const std::span<const std::uint32_t> top = tops.dense<std::uint32_t>();
    const std::span<float> sums = out.dense<float>();
    constexpr std::int64_t grain = 4096;
    cpu::parallel_for(out.shape().elements(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const std::uint64_t sum = std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i];
        sums[i] = float_of(sum, top[i], spare_bits(count));
      }
    });
  }
};

struct ScatterIntegers {
  static constexpr std::string_view name = "scatter_integers";
  static constexpr std::array inputs = {"places", "values"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;

  TensorSpec output(const TensorSpec&, const TensorSpec& values) const {
    return {shape, values.dtype};
  }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& values, const Operand& out) {
    return adding_launch_of(KernelSource::wgsl(scatter_integers_wgsl), values,
                            out.shape().elements());
  }
  static void cpu_kernel(const cpu::Input& places, const cpu::Input& values,
                         const cpu::Output& out) {
    cpu::zero(out);
    const auto add = [&](auto zero) {
      using T = decltype(zero);
      const std::span<const T> from = values.dense<T>();
      const std::span<T> to = out.dense<T>();
      each_placed(places, out.shape().elements(), [&](std::size_t i, std::size_t place) {
        to[place] = static_cast<T>(static_cast<std::uint32_t>(to[place]) +
                                   static_cast<std::uint32_t>(from[i]));
      });
    };
    if (values.dtype() == DType::i32) return add(std::int32_t{});
    add(std::uint32_t{});
  }
};

struct ScatterPlus {
  static constexpr std::string_view name = "scatter_plus";
  static Expr body(Expr a, Expr b) { return a + b; }
};

struct ScatterNarrow {
  static constexpr std::string_view name = "scatter_narrow";
  static Expr body(Expr x) { return cast(x, DType::f16); }
};

AnyTensor sums_of(const Scattered& part, const Shape& shape) {
  const auto& [places, values] = part;
  if (values.dtype() == DType::boolean)
    throw DTypeError("scatter_sums: takes numbers, got " + to_string(values.spec()));
  if (!is_float(values.dtype())) return apply(ScatterIntegers{shape}, places, values);
  const AnyTensor tops = apply(ScatterTops{shape}, places, values);
  const AnyTensor digits = apply(ScatterDigits{}, places, values, tops);
  return apply(ScatterRound{values.shape().elements()}, digits, tops);
}

}  // namespace

AnyTensor scatter_sums(std::span<const Scattered> parts, const TensorSpec& out) {
  AnyTensor sum = sums_of(parts[0], out.shape);
  for (const Scattered& part : parts.subspan(1))
    sum = apply(ScatterPlus{}, sum, sums_of(part, out.shape));
  return out.dtype == DType::f16 ? apply(ScatterNarrow{}, sum) : sum;
}

}  // namespace kiln::detail
