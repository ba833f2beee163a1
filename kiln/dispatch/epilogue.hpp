#pragma once
#include <string_view>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch {

/// What a store computes from each element of a result before it writes it: the operations that
/// were fused into the store of a reduction or a kernel.
struct FusedEpilogue {
  BodyPtr body;  ///< of the stored value, then of one element of each of `inputs`; a root an output
  std::vector<double> params{};     ///< the body's run-time scalars
  std::vector<RawTensor> inputs{};  ///< each broadcasts to the result's shape; may be strided
  std::vector<DType> out;           ///< one a root; every output is dense and of the result's shape
};

/// Throws an error that begins with `op`: KernelError if the body has other numbers of inputs,
/// params or roots than the epilogue, ShapeError if an input does not broadcast to `shape`, which
/// is the result's.
void require_fits(std::string_view op, const FusedEpilogue& epilogue, const Shape& shape);

}  // namespace kiln::dispatch
