#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// @file
/// Comparisons, logic, choice and casts. What holds for all comparisons:
///
/// - The result is bool, of the broadcast shape. ShapeError if shapes do not broadcast.
/// - Both sides have one dtype. DTypeError otherwise: cast one.
/// - Either side may be a number. Beside f16 it is f32, so 0.1 equals no f16. Beside i32 and u32 it
///   must be a number that the dtype has (DTypeError).
/// - With a NaN all are false, except for `not_equal`.
/// - They have no gradient.

/// a == b, elementwise. Also bool.
///
///     equal(tensor({1.0, 2.0}), 2);   // [0, 1]
AnyTensor equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor equal(const AnyTensor& a, Number b);
AnyTensor equal(Number a, const AnyTensor& b);
/// a != b, elementwise. Also bool. True for a NaN.
///
///     not_equal(tensor({1.0, 2.0}), 2);   // [1, 0]
AnyTensor not_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor not_equal(const AnyTensor& a, Number b);
AnyTensor not_equal(Number a, const AnyTensor& b);
/// a < b, elementwise.
///
///     less(tensor({1.0, 2.0}), 2);   // [1, 0]
AnyTensor less(const AnyTensor& a, const AnyTensor& b);
AnyTensor less(const AnyTensor& a, Number b);
AnyTensor less(Number a, const AnyTensor& b);
/// a <= b, elementwise.
///
///     less_equal(tensor({1.0, 2.0}), 1.5);   // [1, 0]
AnyTensor less_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor less_equal(const AnyTensor& a, Number b);
AnyTensor less_equal(Number a, const AnyTensor& b);
/// a > b, elementwise.
///
///     greater(tensor({1.0, 2.0}), 1);   // [0, 1]
AnyTensor greater(const AnyTensor& a, const AnyTensor& b);
AnyTensor greater(const AnyTensor& a, Number b);
AnyTensor greater(Number a, const AnyTensor& b);
/// a >= b, elementwise.
///
///     greater_equal(tensor({1.0, 2.0}), 1.5);   // [0, 1]
AnyTensor greater_equal(const AnyTensor& a, const AnyTensor& b);
AnyTensor greater_equal(const AnyTensor& a, Number b);
AnyTensor greater_equal(Number a, const AnyTensor& b);

/// The same functions as operators: x == y compares elements, not handles.
///
///     const AnyTensor x = tensor({-1.0, 2.0});
///     where(x > 0, x, 0.1 * x);   // [-0.1, 2]
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

/// Whether an element is NaN, as bool. f32 and f16.
///
///     is_nan(log(tensor({-1.0, 1.0})));   // [1, 0]
AnyTensor is_nan(const AnyTensor& x);
/// Whether an element is an infinity, as bool. f32 and f16.
///
///     is_inf(log(tensor({-1.0, 0.0, 1.0})));   // [0, 1, 0]
AnyTensor is_inf(const AnyTensor& x);
/// Whether an element is neither NaN nor an infinity, as bool. f32 and f16.
///
///     is_finite(log(tensor({-1.0, 0.0, 1.0})));   // [0, 0, 1]
AnyTensor is_finite(const AnyTensor& x);

/// Not x, elementwise, for bool (DTypeError otherwise).
///
///     logical_not(tensor({true, false}));   // [0, 1]
AnyTensor logical_not(const AnyTensor& x);
/// a and b, elementwise, for bool (DTypeError otherwise). Shapes broadcast.
///
///     logical_and(tensor({true, false}), tensor({true}));   // [1, 0]
AnyTensor logical_and(const AnyTensor& a, const AnyTensor& b);
/// a or b, elementwise, for bool (DTypeError otherwise). Shapes broadcast.
///
///     logical_or(tensor({true, false}), tensor({true}));   // [1, 1]
AnyTensor logical_or(const AnyTensor& a, const AnyTensor& b);
/// The same functions as operators. Both sides of && and || are computed.
///
///     const AnyTensor x = tensor({-1.0, 2.0});
///     !(x > 0) || x == 2;   // [1, 1]
inline AnyTensor operator!(const AnyTensor& x) { return logical_not(x); }
inline AnyTensor operator&&(const AnyTensor& a, const AnyTensor& b) { return logical_and(a, b); }
inline AnyTensor operator||(const AnyTensor& a, const AnyTensor& b) { return logical_or(a, b); }

/// `yes` where `condition` (bool) holds, else `no`. Shapes broadcast (ShapeError). Both sides have
/// one dtype (DTypeError), of any kind. The gradient goes to the side that was taken. A number gets
/// the dtype of the other side, which must have it as in `full` (DTypeError). Two numbers give i32
/// if both are integers, else f32.
///
///     const AnyTensor x = tensor({-1.0, 2.0});
///     where(x > 0, x, x * 0.1);    // [-0.1, 2]
///     where(x > 0, x, 0.0);        // [0, 2]
///     where(x > 0, 1.0, -1.0);     // [-1, 1]
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, const AnyTensor& no);
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, Number no);
AnyTensor where(const AnyTensor& condition, Number yes, const AnyTensor& no);
AnyTensor where(const AnyTensor& condition, Number yes, Number no);

/// The same numbers in another dtype, or the nearest numbers that it has, on every runtime:
///
/// - To i32 and u32: floats are cut towards 0. A number beyond the largest or smallest becomes that
///   one, so negative numbers are 0 as u32. NaN becomes 0.
/// - To f16: rounded to the nearest; infinity from 65520 on.
/// - To bool: everything except 0 is true, NaN included.
///
/// Differentiable between floats.
///
///     cast(tensor({-1.5, 2.7}), DType::i32);   // [-1, 2]
AnyTensor cast(const AnyTensor& x, DType dtype);

}  // namespace kiln
