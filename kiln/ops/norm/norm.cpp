#include "kiln/ops/norm/norm.hpp"

#include <fmt/format.h>

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

AnyTensor layer_norm(const AnyTensor& x, const AnyTensor& weight, const AnyTensor& bias,
                     double epsilon) {
  const bool fits =
      x.rank() > 0 && weight.shape() == Shape{x.dim(-1)} && bias.shape() == weight.shape();
  if (!fits) {
    throw ShapeError(fmt::format(
        "layer_norm: weight and bias must have the last axis' size (x {}, weight {}, bias {})",
        to_string(x.shape()), to_string(weight.shape()), to_string(bias.shape())));
  }
  const AnyTensor centred = x - mean(x, -1, true);
  const AnyTensor variance = mean(centred * centred, -1, true);
  return centred * rsqrt(variance + epsilon) * weight + bias;
}

}  // namespace kiln
