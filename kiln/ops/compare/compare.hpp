#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

// Comparisons give bool tensors of the broadcast shape; both sides have one dtype (DTypeError
// otherwise: cast one). With a NaN all but not_equal are false. Either side may be a number: beside
// f16 it takes part in f32, so that 0.1 equals no f16; beside integers it must be one that the
// dtype has (DTypeError). The operators are the same functions: x == y compares elements, not
// handles.
//
//     where(x > 0, x, 0.1 * x);
//     cast(x == y, DType::i32).sum();   // how many are equal

AnyTensor equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor equal(const AnyTensor& a, Number b);
AnyTensor equal(Number a, const AnyTensor& b);
AnyTensor not_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor not_equal(const AnyTensor& a, Number b);
AnyTensor not_equal(Number a, const AnyTensor& b);
AnyTensor less(const AnyTensor& a, const AnyTensor& b);
AnyTensor less(const AnyTensor& a, Number b);
AnyTensor less(Number a, const AnyTensor& b);
AnyTensor less_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor less_equal(const AnyTensor& a, Number b);
AnyTensor less_equal(Number a, const AnyTensor& b);
AnyTensor greater(const AnyTensor& a, const AnyTensor& b);
AnyTensor greater(const AnyTensor& a, Number b);
AnyTensor greater(Number a, const AnyTensor& b);
AnyTensor greater_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor greater_equal(const AnyTensor& a, Number b);
AnyTensor greater_equal(Number a, const AnyTensor& b);

inline AnyTensor operator==(const AnyTensor& a, const AnyTensor& b) { return equal(a, b); }
inline AnyTensor operator==(const AnyTensor& a, Number b) { return equal(a, b); }
inline AnyTensor operator==(Number a, const AnyTensor& b) { return equal(a, b); }
inline AnyTensor operator!=(const AnyTensor& a, const AnyTensor& b) { return not_equal(a, b); }
inline AnyTensor operator!=(const AnyTensor& a, Number b) { return not_equal(a, b); }
inline AnyTensor operator!=(Number a, const AnyTensor& b) { return not_equal(a, b); }
inline AnyTensor operator<(const AnyTensor& a, const AnyTensor& b) { return less(a, b); }
inline AnyTensor operator<(const AnyTensor& a, Number b) { return less(a, b); }
inline AnyTensor operator<(Number a, const AnyTensor& b) { return less(a, b); }
inline AnyTensor operator<=(const AnyTensor& a, const AnyTensor& b) { return less_equal(a, b); }
inline AnyTensor operator<=(const AnyTensor& a, Number b) { return less_equal(a, b); }
inline AnyTensor operator<=(Number a, const AnyTensor& b) { return less_equal(a, b); }
inline AnyTensor operator>(const AnyTensor& a, const AnyTensor& b) { return greater(a, b); }
inline AnyTensor operator>(const AnyTensor& a, Number b) { return greater(a, b); }
inline AnyTensor operator>(Number a, const AnyTensor& b) { return greater(a, b); }
inline AnyTensor operator>=(const AnyTensor& a, const AnyTensor& b) { return greater_equal(a, b); }
inline AnyTensor operator>=(const AnyTensor& a, Number b) { return greater_equal(a, b); }
inline AnyTensor operator>=(Number a, const AnyTensor& b) { return greater_equal(a, b); }

AnyTensor is_nan(const AnyTensor& x);

// Of bool tensors.
AnyTensor logical_not(const AnyTensor& x);
AnyTensor logical_and(const AnyTensor& a, const AnyTensor& b);
AnyTensor logical_or(const AnyTensor& a, const AnyTensor& b);
// The same as operators. Both sides of && and || are computed.
inline AnyTensor operator!(const AnyTensor& x) { return logical_not(x); }
inline AnyTensor operator&&(const AnyTensor& a, const AnyTensor& b) { return logical_and(a, b); }
inline AnyTensor operator||(const AnyTensor& a, const AnyTensor& b) { return logical_or(a, b); }

/// `yes` where `condition` (bool) holds, else `no`. Shapes broadcast; both sides have one dtype
/// (DTypeError otherwise). The gradient goes to the side taken. A number has the dtype of the other
/// side, and must be one that it has (DTypeError); of two numbers the result is i32 if both are of
/// integer types, else f32.
///
///     where(x > 0, x, x * 0.1);   // leaky ReLU
///     where(x > 0, x, 0.0);
///     where(x > 0, 1.0, -1.0);    // f32
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, const AnyTensor& no);
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, Number no);
AnyTensor where(const AnyTensor& condition, Number yes, const AnyTensor& no);
AnyTensor where(const AnyTensor& condition, Number yes, Number no);

/// The same numbers in another dtype, and where it has not the number the nearest one, on every
/// runtime. To an integer, floats are cut towards zero, what is beyond the largest or the smallest
/// becomes that (so a negative number is 0 as u32, also from i32), and a NaN is 0. f16 rounds to
/// nearest, from 65520 on to infinity. To bool, everything but 0 is true, NaN included.
/// Differentiable between floats.
AnyTensor cast(const AnyTensor& x, DType dtype);

}  // namespace kiln
