#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch {

/// Computes every root of `body` over inputs that broadcast to `shape`; result i has dtype
/// `dtypes[i]`. Inputs may be strided. One launch, or several where the adapter binds too few
/// buffers. `params` are the body's run-time scalars. `runtime` says where, if there is no input.
/// Where `in_place[i]` names an input, result i takes its buffer unless there are several launches:
/// that input is dense from its start, of `shape` and `dtypes[i]`, and no other lies in its buffer.
std::vector<RawTensor> run_elementwise(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                                       const BodyPtr& body, std::span<const double> params,
                                       std::span<const RawTensor> inputs, const Shape& shape,
                                       std::span<const DType> dtypes,
                                       std::span<const std::int32_t> in_place = {});

/// The function whose result is its one input.
const BodyPtr& identity_body();

/// The same values, dense from the start of a buffer: `x` itself where it is so already.
RawTensor make_dense(const RawTensor& x);

/// Copies `x` into `target`, which may be a strided part of a buffer, and has the same shape and
/// dtype.
void copy_into(const RawTensor& x, const RawTensor& target);

}  // namespace kiln::dispatch
