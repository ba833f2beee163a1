#pragma once
#include "kiln/ops/compare/compare.hpp"

namespace kiln {

/// An f16 tensor as f32, any other as it is: what operations made of several steps compute in, so
/// that only their result is rounded.
inline AnyTensor wide(const AnyTensor& x) {
  return x.dtype() == DType::f16 ? cast(x, DType::f32) : x;
}

}  // namespace kiln
