#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"
#include "kiln/support/axes.hpp"

namespace kiln {

/// How a reduction combines elements. `max` and `min` keep a NaN, and take -0 as less than +0.
/// `argmax` and `argmin` give the first index along the one reduced axis; a NaN is the extreme.
/// `norm` is the root of the sum of squares, for floats; no square leaves the range of f32.
enum class Combine : std::uint8_t { sum, max, min, argmax, argmin, norm };

/// What a `reduction` rule returns.
struct Reduction {
  Combine combine = Combine::sum;
  Axes axes;         ///< those that are taken away
  Number scale = 1;  ///< the result is multiplied by this (1 / count for a mean); floats only
};

namespace dispatch {

/// A reduction and the function of its inputs that is reduced.
struct ReductionCall {
  std::string_view op;
  Reduction reduction;
  Shape shape;       ///< what is reduced; every input broadcasts to it
  BodyPtr before{};  ///< from one element of each input to the element reduced; null: the
                     ///< one input itself
  std::vector<double> params{};  ///< run-time scalars of `before`
  DType dtype = DType::f32;      ///< of the element reduced: any but bool; what `before` gives is
                                 ///< rounded to it, as if it had been stored
};

/// The word from which combining starts: neutral for the combination.
std::uint32_t neutral_word(Combine combine, DType element);

/// Reduces what `call.before` makes of `inputs`, which may be strided, to the kept axes in order.
/// The result is one dense tensor of `out`, or what `epilogue` makes of it, dense and of
/// `out.shape`. Sums of f16 are made in f32. There are one or two launches. The order of additions
/// depends on shape and strides alone, so results repeat. `runtime` is used if there is no input.
/// Throws an error that begins with `call.op`: DTypeError for inputs that a function does not take,
/// KernelError for a wrong number of them, ShapeError for one that does not broadcast.
std::vector<RawTensor> run_reduction(const ReductionCall& call,
                                     const std::shared_ptr<Runtime>& runtime,
                                     std::span<const RawTensor> inputs, const TensorSpec& out,
                                     const FusedEpilogue* epilogue = nullptr);

/// The plain case: reduces `x` itself.
RawTensor run_reduction(std::string_view op, const Reduction& reduction, const RawTensor& x,
                        const TensorSpec& out);

}  // namespace dispatch
}  // namespace kiln
