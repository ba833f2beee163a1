#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// @file
/// Elementwise operations on integers. What holds for all of them:
///
/// - They take i32 and u32; DTypeError otherwise, or if the dtypes of two operands differ.
/// - Shapes broadcast as in NumPy; ShapeError otherwise.
/// - Either operand may be a number that the other one's dtype has (DTypeError).
/// - Every pair of numbers has one result, the same on every runtime.
/// - They have no gradient.

/// a / b rounded down, where `/` cuts towards 0. Where b is 0, and of the least i32 by -1, it is a,
/// as of `/`.
///
///     floor_div(tensor({7, -7}), tensor({2}));   // [3, -4]
///     floor_div(tensor({7, -7}), 2);   // [3, -4]
AnyTensor floor_div(const AnyTensor& a, const AnyTensor& b);
AnyTensor floor_div(const AnyTensor& a, Number b);
AnyTensor floor_div(Number a, const AnyTensor& b);
/// What `floor_div` leaves, a - floor_div(a, b) * b, with the sign of b, as in Python and NumPy.
/// Where b is 0 it is 0 instead.
///
///     mod(tensor({7, -7}), tensor({3}));   // [1, 2]
///     mod(tensor({7, -7}), 3);   // [1, 2]
AnyTensor mod(const AnyTensor& a, const AnyTensor& b);
AnyTensor mod(const AnyTensor& a, Number b);
AnyTensor mod(Number a, const AnyTensor& b);
/// The bits of a, moved `b` places up. For a count that is not in [0, 31] the result is 0.
///
///     left_shift(tensor({3, 5}), 2);   // [12, 20]
AnyTensor left_shift(const AnyTensor& a, const AnyTensor& b);
AnyTensor left_shift(const AnyTensor& a, Number b);
AnyTensor left_shift(Number a, const AnyTensor& b);
/// The bits of a, moved `b` places down. Of an i32 the sign is filled in: a / 2^b, rounded down.
/// For a count that is not in [0, 31] the result is 0, and -1 of a negative a.
///
///     right_shift(tensor({13, -13}), 2);   // [3, -4]
AnyTensor right_shift(const AnyTensor& a, const AnyTensor& b);
AnyTensor right_shift(const AnyTensor& a, Number b);
AnyTensor right_shift(Number a, const AnyTensor& b);
/// The bits that both have.
///
///     bit_and(tensor({12, -1}), 10);   // [8, 10]
AnyTensor bit_and(const AnyTensor& a, const AnyTensor& b);
AnyTensor bit_and(const AnyTensor& a, Number b);
AnyTensor bit_and(Number a, const AnyTensor& b);
/// The bits that either has.
///
///     bit_or(tensor({12, -1}), 10);   // [14, -1]
AnyTensor bit_or(const AnyTensor& a, const AnyTensor& b);
AnyTensor bit_or(const AnyTensor& a, Number b);
AnyTensor bit_or(Number a, const AnyTensor& b);
/// The bits that one of the two has.
///
///     bit_xor(tensor({12, -1}), 10);   // [6, -11]
AnyTensor bit_xor(const AnyTensor& a, const AnyTensor& b);
AnyTensor bit_xor(const AnyTensor& a, Number b);
AnyTensor bit_xor(Number a, const AnyTensor& b);
/// The bits that x has not.
///
///     bit_not(tensor({0, 5}));   // [-1, -6]
AnyTensor bit_not(const AnyTensor& x);

/// The same functions as operators. A comparison binds tighter than `&`, `^` and `|`.
///
///     const AnyTensor x = tensor({5, -6});
///     ((x << 3) ^ (x >> 1)) & ~(x | 1);   // [42, 4]
inline AnyTensor operator<<(const AnyTensor& a, const AnyTensor& b) { return left_shift(a, b); }
inline AnyTensor operator<<(const AnyTensor& a, Number b) { return left_shift(a, b); }
inline AnyTensor operator<<(Number a, const AnyTensor& b) { return left_shift(a, b); }
inline AnyTensor operator>>(const AnyTensor& a, const AnyTensor& b) { return right_shift(a, b); }
inline AnyTensor operator>>(const AnyTensor& a, Number b) { return right_shift(a, b); }
inline AnyTensor operator>>(Number a, const AnyTensor& b) { return right_shift(a, b); }
inline AnyTensor operator&(const AnyTensor& a, const AnyTensor& b) { return bit_and(a, b); }
inline AnyTensor operator&(const AnyTensor& a, Number b) { return bit_and(a, b); }
inline AnyTensor operator&(Number a, const AnyTensor& b) { return bit_and(a, b); }
inline AnyTensor operator|(const AnyTensor& a, const AnyTensor& b) { return bit_or(a, b); }
inline AnyTensor operator|(const AnyTensor& a, Number b) { return bit_or(a, b); }
inline AnyTensor operator|(Number a, const AnyTensor& b) { return bit_or(a, b); }
inline AnyTensor operator^(const AnyTensor& a, const AnyTensor& b) { return bit_xor(a, b); }
inline AnyTensor operator^(const AnyTensor& a, Number b) { return bit_xor(a, b); }
inline AnyTensor operator^(Number a, const AnyTensor& b) { return bit_xor(a, b); }
inline AnyTensor operator~(const AnyTensor& x) { return bit_not(x); }

}  // namespace kiln
