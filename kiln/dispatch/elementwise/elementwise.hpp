#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch {

/// Computes every root of `body` over inputs that broadcast to `shape`, or that it reads at
/// positions. Result i has dtype `dtypes[i]`. Inputs may be strided. There is one launch, or
/// several if the adapter binds too few buffers. `params` are the body's run-time scalars.
/// `runtime` is used if there is no input. If `in_place[i]` names an input, result i takes its
/// buffer, unless there are several launches; that input must be dense from its start, of `shape`
/// and `dtypes[i]`, and alone in its buffer.
std::vector<RawTensor> run_elementwise(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                                       const BodyPtr& body, std::span<const double> params,
                                       std::span<const RawTensor> inputs, const Shape& shape,
                                       std::span<const DType> dtypes,
                                       std::span<const std::int32_t> in_place = {});

/// The function that returns its one input.
const BodyPtr& identity_body();

/// The same values, dense from the start of a buffer: `x` itself if it is like that already.
RawTensor make_dense(const RawTensor& x);

/// Copies `x` into `target`, which may be a strided part of a buffer, and has the same shape and
/// dtype.
void copy_into(const RawTensor& x, const RawTensor& target);

}  // namespace kiln::dispatch
