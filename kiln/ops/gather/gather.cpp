#include "kiln/ops/gather/gather.hpp"

#include <fmt/format.h>

#include "gather_backward_wgsl.hpp"
#include "gather_wgsl.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

constexpr std::int64_t workgroup = 64;

struct GatherBackward {
  static constexpr std::string_view name = "gather_backward";
  static constexpr std::array inputs = {"grad", "index"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  int axis;

  TensorSpec output(const TensorSpec& grad, const TensorSpec&) const { return {shape, grad.dtype}; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand& out) const {
    return {.source = KernelSource::wgsl(gather_backward_wgsl).define("rank", out.rank()),
            .workgroup = {workgroup, 1, 1},
            .params = {{"count", out.shape().elements()}, {"axis", std::int64_t{axis}}},
            .grid = {ceil_div(out.shape().elements(), workgroup), 1, 1},
            .strided = true,
            .trusted = true};
  }
};

struct Gather {
  static constexpr std::string_view name = "gather";
  static constexpr std::array inputs = {"x", "index"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;

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
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand& out) const {
    // A NaN that the compiler cannot fold: WGSL refuses one in a constant.
    const char* outside =
        is_float(x.dtype) ? "Elem(bitcast<f32>(0x7fc00000u | min(i, 0u)))" : "Elem(0)";
    return {
        .source =
            KernelSource::wgsl(gather_wgsl).define("rank", out.rank()).define("outside", outside),
        .workgroup = {workgroup, 1, 1},
        .params = {{"count", out.shape().elements()},
                   {"axis", std::int64_t{axis}},
                   {"size", x.dim(axis)}},
        .grid = {ceil_div(out.shape().elements(), workgroup), 1, 1},
        .strided = true,
        .trusted = true};
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
    if (grads[0]) grads[0].set(apply(GatherBackward{saved.shape, axis}, grad, saved.index.get()));
  }
};
static_assert(Extension<Gather> && Extension<GatherBackward>);

}  // namespace

AnyTensor gather(const AnyTensor& x, int axis, const AnyTensor& index) {
  return apply(Gather{normalize_axis("gather", axis, x.shape())}, x, index);
}

}  // namespace kiln
