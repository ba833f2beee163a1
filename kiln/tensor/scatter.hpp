#pragma once
/// Sums by place: what gradients of reads at computed places are made of.
#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/scalar/element_gradient.hpp"

namespace kiln::detail {

/// Values, and the places to which they are added: u32 of the same shape.
struct Scattered {
  AnyTensor places;
  AnyTensor values;
};

/// Element p of the result, numbered in order, is the sum of the values whose place is p. Values at
/// other places, such as `no_place`, are left out. All parts have values of one dtype. That of the
/// result is the same, or f16 where they are f32.
///
/// The result does not depend on the order of the values, and is the same on every runtime.
/// Integers wrap around. Floats are summed exactly, after each is rounded to a multiple of N 2^-61
/// times the largest value of its place, where N is the number of the part's values, up to the next
/// power of two. A NaN, or infinities of both signs, make a sum NaN. Throws DTypeError for bool. No
/// gradient is derived.
AnyTensor scatter_sums(std::span<const Scattered> parts, const TensorSpec& out);

}  // namespace kiln::detail
