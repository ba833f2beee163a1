#pragma once
#include <span>

#include "kiln/dispatch/op_table.hpp"

namespace kiln::dispatch::wgsl {

/// Throws KernelError, by name, for operands, scratch buffers and params whose names cannot stand
/// in a kernel's text, and for two of one name.
void check_names(const OpTable& table, const webgpu::Launch& launch, std::span<const Operand> in,
                 std::span<const Operand> out);

}  // namespace kiln::dispatch::wgsl
