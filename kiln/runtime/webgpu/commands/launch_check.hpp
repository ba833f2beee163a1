#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kiln/runtime/runtime.hpp"
#include "kiln/runtime/webgpu/memory/memory.hpp"
#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"

namespace kiln::wgpu {

/// A binding as memory, with its size in bytes.
struct LaunchOperand {
  GpuMemory* memory = nullptr;
  std::uint64_t id = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Room for the operands of a launch: the most that Limits::storage_buffers can be.
using LaunchOperands = std::array<LaunchOperand, 64>;

/// Sets the sizes of `operands`, which have their memory and offset already. Throws KernelError for
/// a launch at which wgpu-native would end the process.
void check_launch(const Pipeline& kernel, std::span<LaunchOperand> operands,
                  std::span<const Binding> bindings, std::span<const std::byte> metadata,
                  const std::array<std::uint32_t, 3>& grid, const Limits& limits);

/// The kernel's label, and the binding's place as WGSL writes it: `matmul: @group(0) @binding(2)`.
std::string binding_name(const Pipeline& kernel, std::size_t index);

}  // namespace kiln::wgpu
