#include "kiln/ops/norm/norm.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/wide.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

struct RootMeanSquareGradient {
  static constexpr std::string_view name = "root_mean_square_backward";
  Param part;  // 1 / count
  Expr body(Expr x, Expr root, Expr gradient) const {
    return unless_zero(gradient, x / root * (gradient * part));
  }
};

/// sqrt(mean(x^2)) over the last axis, which is kept; no square leaves the range of f32.
struct RootMeanSquare {
  static constexpr std::string_view name = "root_mean_square";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& x) {
    TensorSpec out = x;
    out.shape[-1] = 1;
    return out;
  }
  static Reduction reduction(const TensorSpec& x) {
    Reduction out{.combine = Combine::norm,
                  .scale = 1 / std::sqrt(static_cast<double>(x.shape[-1]))};
    out.axes.set(static_cast<std::size_t>(x.shape.rank() - 1));
    return out;
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Checkpoint x;
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor& out) {
    return {saver.keep(x), saver.keep(out)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) {
    const AnyTensor x = saved.x.get();
    const RootMeanSquareGradient gradient{{1 / static_cast<double>(x.dim(-1))}};
    grads[0].set(apply(gradient, x, saved.out.get(), grad));
  }
};
static_assert(Extension<RootMeanSquare>);

/// 1 / sqrt(x^2 + y^2) for x, y >= 0. No step leaves the range of f32.
struct InverseHypotenuse {
  static constexpr std::string_view name = "inverse_hypotenuse";
  Param y;
  Expr body(Expr x) const {
    const Expr longer = max(x, y);
    const Expr ratio = min(x, y) / longer;
    return rsqrt(1 + ratio * ratio) / longer;
  }
};

}  // namespace

AnyTensor layer_norm(const AnyTensor& x, const AnyTensor& weight, const AnyTensor& bias,
                     Number epsilon) {
  const bool fits =
      x.rank() > 0 && weight.shape() == Shape{x.dim(-1)} && bias.shape() == weight.shape();
  if (!fits) {
    throw ShapeError(fmt::format(
        "layer_norm: weight and bias must have the last axis' size (x {}, weight {}, bias {})",
        to_string(x.shape()), to_string(weight.shape()), to_string(bias.shape())));
  }
  if (!is_float(x.dtype()) || weight.dtype() != x.dtype() || bias.dtype() != x.dtype()) {
    throw DTypeError(fmt::format(
        "layer_norm: takes x, weight and bias of one dtype, f32 or f16, got {}, {} and {}",
        to_string(x.dtype()), to_string(weight.dtype()), to_string(bias.dtype())));
  }
  // To subtract a number from a row changes no result. The differences from the first element are
  // exact if the elements are close together, even far from 0. Their mean is rounded, and no later
  // step corrects that. It is as large as the first element's distance from the row's mean, which
  // is at most sqrt(N - 1) deviations. So the normalised values of a row share an error of sqrt(N -
  // 1) times 2^-24, or a few of those, since the sum and 1 / N are rounded, too.
  const AnyTensor moved = wide(x) - wide(slice(x.detach(), -1, 0, 1));
  const AnyTensor centred = moved - mean(moved, -1, true);
  const AnyTensor deviation = apply(RootMeanSquare{}, centred);
  const AnyTensor inverse = apply(InverseHypotenuse{{std::sqrt(epsilon)}}, deviation);
  return cast(centred * inverse * wide(weight) + wide(bias), x.dtype());
}

}  // namespace kiln
