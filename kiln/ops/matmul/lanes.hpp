#pragma once
#include "kiln/ops/matmul/matmul.hpp"

namespace kiln::webgpu {

/// The matrix product of a software adapter. It uses no workgroup memory, and has one text for
/// every layout and size.
Launch lanes_matmul(const Operand& lhs, const Operand& rhs, const Operand& out,
                    const Limits& limits, GradientIn gradient);

}  // namespace kiln::webgpu
