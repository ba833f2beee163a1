#include "kiln/ops/gather/gather.hpp"

#include <fmt/format.h>

#include <limits>

#include "gather_backward_wgsl.hpp"
#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

constexpr std::int64_t workgroup = 64;

/// Calls f(number, the coordinates) for every position of `shape` in order, on several threads.
template <class F>
void each_position(const Shape& shape, const F& f) {
  constexpr std::int64_t grain = 4096;
  cpu::parallel_for(shape.elements(), grain, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::int64_t, max_rank> at{};
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t rest = i;
      for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis])
        at[static_cast<std::size_t>(axis)] = rest % shape[axis];
      f(static_cast<std::size_t>(i), at);
    }
  });
}

/// The offset of an element in a tensor of those strides, without the step along `axis`.
template <class T>
std::int64_t line_of(const cpu::Strided<T>& x, const std::array<std::int64_t, max_rank>& at,
                     int axis) {
  std::int64_t offset = 0;
  for (int d = 0; d < x.shape().rank(); ++d)
    offset += d == axis ? 0 : at[static_cast<std::size_t>(d)] * x.stride(d);
  return offset;
}

/// Indices as words. A negative index becomes a large one.
cpu::Strided<const std::uint32_t> words(const cpu::Input& index) {
  if (index.dtype() == DType::u32) return index.strided<std::uint32_t>();
  const auto x = index.strided<std::int32_t>();
  return {reinterpret_cast<const std::uint32_t*>(x.data()), index.raw().layout};  // NOLINT
}

struct GatherBackward {
  static constexpr std::string_view name = "gather_backward";
  static constexpr std::array inputs = {"grad", "index"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  int axis;

  TensorSpec output(const TensorSpec& grad, const TensorSpec&) const { return {shape, grad.dtype}; }
  webgpu::Launch webgpu_kernel(const Operand& grad, const Operand&, const Operand& out) const {
    return {.source = KernelSource::wgsl(gather_backward_wgsl).define("rank", out.rank()),
            .workgroup = {workgroup, 1, 1},
            .params = {{"count", out.shape().elements()}, {"axis", std::int64_t{axis}}},
            .grid = {ceil_div(out.shape().elements(), workgroup), 1, 1},
            .strided = true,
            .trusted = true,
            .rounds = out.rank() + grad.dim(axis)};
  }
  /// As in the shader: each element looks through all picks along its line.
  void cpu_kernel(const cpu::Input& grad, const cpu::Input& index, const cpu::Output& out) const {
    cpu::with_float(out.dtype(), [&](auto element) {
      using T = decltype(element);
      const auto from = grad.strided<T>();
      const auto picks = words(index);
      const std::span<T> to = out.dense<T>();
      each_position(shape, [&](std::size_t i, const auto& at) {
        float sum = 0;
        bool inside = true;
        for (int d = 0; d < shape.rank(); ++d)
          inside = inside && (d == axis || at[static_cast<std::size_t>(d)] < grad.dim(d));
        const std::int64_t line = inside ? line_of(picks, at, axis) : 0;
        const std::int64_t source = inside ? line_of(from, at, axis) : 0;
        for (std::int64_t k = 0; inside && k < grad.dim(axis); ++k) {
          if (picks.data()[line + k * picks.stride(axis)] == at[static_cast<std::size_t>(axis)])
            sum += static_cast<float>(from.data()[source + k * from.stride(axis)]);
        }
        to[i] = T(sum);
      });
    });
  }
};

constexpr std::int64_t part =
    32768;  // picks in a part: half of the rounds that a thread's loops may take

/// The gradient of x, of `shape`. If the adapter would end a loop over all picks, it is computed in
/// parts, which are added in f32.
AnyTensor scatter(const Shape& shape, int axis, const AnyTensor& grad, const AnyTensor& index) {
  const GatherBackward op{shape, axis};
  const std::int64_t picks = index.dim(axis);
  if (picks <= part || grad.device().limits().loop_rounds == 0) return apply(op, grad, index);
  const auto piece = [&](std::int64_t begin) {
    return apply(op, cast(slice(grad, axis, begin, begin + part), DType::f32),
                 slice(index, axis, begin, begin + part));
  };
  AnyTensor sum = piece(0);
  for (std::int64_t begin = part; begin < picks; begin += part) sum = sum + piece(begin);
  return cast(sum, grad.dtype());
}

struct Gather {
  static constexpr std::string_view name = "gather";
  static constexpr std::array inputs = {"x", "index"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;
  Param outside;  // the element for an index outside of x

  TensorSpec output(const TensorSpec& x, const TensorSpec& index) const {
    if (index.dtype != DType::i32 && index.dtype != DType::u32) {
      throw DTypeError(fmt::format("gather: index must be i32 or u32, got {}", to_string(index)));
    }
    bool fits = x.shape.rank() == index.shape.rank();
    for (int i = 0; fits && i < x.shape.rank(); ++i)
      fits = i == axis || index.shape[i] <= x.shape[i];
    if (!fits) {
      throw ShapeError(
          fmt::format("gather: index must have x's rank, and sizes within x's other than along "
                      "axis {} (x {}, index {})",
                      axis, to_string(x.shape), to_string(index.shape)));
    }
    return {index.shape, x.dtype};
  }
  Expr element(const At& at, const Elements& x, const Elements& index) const {
    return x(at.with(axis, cast(index(at), DType::i32))).or_else(outside);
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Shape shape;
    Checkpoint index;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor& index,
                    const AnyTensor&) {
    return {x.shape(), saver.keep(index)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) const {
    if (grads[0]) grads[0].set(scatter(saved.shape, axis, grad, saved.index.get()));
  }
};
static_assert(Extension<Gather> && Extension<GatherBackward>);

}  // namespace

AnyTensor gather(const AnyTensor& x, Integer axis, const AnyTensor& index) {
  const double outside = is_float(x.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 0;
  return apply(Gather{normalize_axis("gather", axis, x.shape()), {outside}}, x, index);
}

}  // namespace kiln
