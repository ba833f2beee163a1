#pragma once
#include <vector>

#include "kiln/check/report.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/support/dtype.hpp"

namespace example {

/// Both operations through check_op: values, gradients, rules, strides, NaN, empty shapes,
/// canaries.
std::vector<kiln::CheckReport> check_operations(const kiln::Device& device, kiln::DType dtype);

}  // namespace example
