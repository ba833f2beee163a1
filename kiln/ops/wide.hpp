#pragma once
#include "kiln/ops/compare/compare.hpp"

namespace kiln {

/// An f16 tensor as f32, any other as it is. Operations of several steps compute in it, so that
/// only their result is rounded.
inline AnyTensor wide(const AnyTensor& x) {
  return x.dtype() == DType::f16 ? cast(x, DType::f32) : x;
}

}  // namespace kiln
