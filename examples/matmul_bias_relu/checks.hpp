#pragma once
#include <vector>

#include "kiln/check/check.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/support/dtype.hpp"

namespace example {

/// Both operations through check_op: values, gradients, rules, strides, NaN, empty shapes,
/// memory, refusals. `progress` is told what is being checked.
std::vector<kiln::CheckReport> check_operations(
    const kiln::Device& device, kiln::DType dtype,
    const std::function<void(const kiln::CheckProgress&)>& progress = {});

}  // namespace example
