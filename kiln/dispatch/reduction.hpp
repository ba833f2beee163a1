#pragma once
#include <bitset>
#include <string_view>

#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln {

/// How a reduction combines elements. `max` and `min` keep a NaN; `argmax` and `argmin` give the
/// first index along the one axis reduced, and count a NaN as the extreme.
enum class Combine : std::uint8_t { sum, max, min, argmax, argmin };

/// The axes of a tensor that a reduction takes away.
using Axes = std::bitset<max_rank>;

/// What a `reduction` rule returns.
struct Reduction {
  Combine combine = Combine::sum;
  Axes axes;
  double scale = 1;  ///< the result is multiplied by this (1 / count for a mean); floats only
};

namespace dispatch {

/// Reduces `x`, which may be strided, to a dense tensor of `out`: the kept axes in order. Sums of
/// f16 are made in f32. One or two launches; the order of additions depends on the shape alone, so
/// results repeat.
RawTensor run_reduction(std::string_view op, const Reduction& reduction, const RawTensor& x,
                        const TensorSpec& out);

}  // namespace dispatch
}  // namespace kiln
