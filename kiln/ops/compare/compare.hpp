#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

// Comparisons give bool tensors; shapes broadcast. With a NaN all but not_equal are false.

AnyTensor equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor not_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor less(const AnyTensor& a, const AnyTensor& b);
AnyTensor less_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor greater(const AnyTensor& a, const AnyTensor& b);
AnyTensor greater_equal(const AnyTensor& a, const AnyTensor& b);
// A number beside an f16 tensor takes part in f32: 0.1 equals no f16.
AnyTensor equal(const AnyTensor& a, Number b);
AnyTensor less(const AnyTensor& a, Number b);
AnyTensor greater(const AnyTensor& a, Number b);

AnyTensor is_nan(const AnyTensor& x);

// Of bool tensors.
AnyTensor logical_not(const AnyTensor& x);
AnyTensor logical_and(const AnyTensor& a, const AnyTensor& b);
AnyTensor logical_or(const AnyTensor& a, const AnyTensor& b);

/// `yes` where `condition` (bool) holds, else `no`. The gradient goes to the side taken.
///
///     where(greater(x, 0), x, x * 0.1);   // leaky ReLU
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, const AnyTensor& no);

/// The same numbers in another dtype, and where it has not the number the nearest one, on every
/// runtime. To an integer, floats are cut towards zero, what is beyond the largest or the smallest
/// becomes that (so a negative number is 0 as u32, also from i32), and a NaN is 0. f16 rounds to
/// nearest, from 65520 on to infinity. To bool, everything but 0 is true, NaN included.
/// Differentiable between floats.
AnyTensor cast(const AnyTensor& x, DType dtype);

}  // namespace kiln
