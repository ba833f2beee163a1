#include "rms_norm.hpp"

#include <fmt/format.h>

#include "rms_norm_wgsl.hpp"

namespace example {
namespace {

using namespace kiln;  // NOLINT(google-build-using-namespace): rules read best without prefixes

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  static constexpr std::array inputs = {"x", "weight"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Param epsilon;

  static TensorSpec output(const TensorSpec& x, const TensorSpec& weight) {
    const bool fits = x.shape.rank() > 0 && weight.shape == Shape{x.shape[-1]};
    const bool floats = is_float(x.dtype) && weight.dtype == x.dtype;
    if (!fits || !floats) {
      const std::string text = fmt::format(
          "rms_norm: takes floats x [..., N] and weight [N] of one dtype (x {}, weight {})",
          to_string(x), to_string(weight));
      if (!fits) throw ShapeError(text);
      throw DTypeError(text);
    }
    return x;
  }

  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand& out) const {
    const std::int64_t size = x.dim(-1);
    const std::int64_t rows = size == 0 ? 0 : out.shape().elements() / size;
    return {.source = KernelSource::wgsl(rms_norm_wgsl),
            .workgroup = {64, 1, 1},
            .params = {{"rows", rows}, {"size", size}, {"epsilon", epsilon}},
            .grid = {rows, 1, 1},
            .rounds = 2 * ceil_div(size, 64) + 6};
  }

  AnyTensor reference(const AnyTensor& x, const AnyTensor& weight) const {
    const AnyTensor wide = cast(x, DType::f32);  // squares leave the range of f16
    const AnyTensor scale = rsqrt(mean(wide * wide, -1, true) + epsilon.value());
    return cast(wide * scale * cast(weight, DType::f32), x.dtype());
  }
};
static_assert(Extension<RmsNorm>);

}  // namespace

AnyTensor rms_norm(const AnyTensor& x, const AnyTensor& weight, double epsilon) {
  return apply(RmsNorm{{epsilon}}, x, weight);
}

}  // namespace example
