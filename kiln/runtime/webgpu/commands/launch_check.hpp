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

/// A binding resolved to memory, with its size spelled out.
struct LaunchOperand {
  GpuMemory* memory = nullptr;
  std::uint64_t id = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Room for the operands of a launch; as many as Limits::storage_buffers can be.
using LaunchOperands = std::array<LaunchOperand, 64>;

/// Throws KernelError for what wgpu-native would not survive. `operands` have their memory and
/// offset set already, and `buffer_bytes` is the size of each one's buffer; this sets their sizes.
void check_launch(const Pipeline& kernel, std::span<LaunchOperand> operands,
                  std::span<const Binding> bindings, std::span<const std::byte> metadata,
                  const std::array<std::uint32_t, 3>& grid, const Limits& limits);

/// The kernel's label and how the binding's place is written in WGSL: `matmul: @group(0)
/// @binding(2)`.
std::string binding_name(const Pipeline& kernel, std::size_t index);

}  // namespace kiln::wgpu
