#pragma once
#include <span>
#include <string_view>

#include "kiln/dispatch/kernel/op_table.hpp"

namespace kiln::dispatch::wgsl {

/// Throws KernelError for operands, scratch buffers and params whose names are not valid in a
/// kernel's text, and for two of one name. The message has the name.
void check_names(const OpTable& table, const webgpu::Launch& launch, std::span<const Operand> in,
                 std::span<const Operand> out);

/// Throws KernelError for an operand that is called as the generated loads of `operand` are, or as
/// the type of its matrices.
void check_load_name(const OpTable& table, const webgpu::Launch& launch,
                     std::span<const Operand> in, std::span<const Operand> out,
                     std::string_view operand, bool by_coordinates);

}  // namespace kiln::dispatch::wgsl
