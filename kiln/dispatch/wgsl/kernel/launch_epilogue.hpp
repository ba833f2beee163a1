#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/wgsl/store.hpp"

namespace kiln::dispatch::wgsl {

/// Whether the launch asks for the array of that operand as one of vec4.
bool wants_vec4(const webgpu::Launch& launch, std::string_view name);

/// Whether the kernel's own text names the operand.
bool mentions_operand(const webgpu::Launch& launch, std::string_view name);

/// The epilogue of the launch, which is applied where `out` is stored. Nothing if the launch names
/// none. `in` are the operands with the layouts that they will have. Throws KernelError for an
/// epilogue whose operands are no inputs of the output's shape.
std::optional<LaunchEpilogue> launch_epilogue(const OpTable& table, const webgpu::Launch& launch,
                                              std::span<const Operand> in, const Operand& out);

}  // namespace kiln::dispatch::wgsl
