#include "kiln/runtime/webgpu/commands/launch_check.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

template <class... Args>
[[noreturn]] void refuse(const Pipeline& kernel, fmt::format_string<Args...> format,
                         Args&&... args) {
  throw KernelError(
      fmt::format("{}: {}", kernel.label, fmt::format(format, std::forward<Args>(args)...)));
}

void check_grid(const Pipeline& kernel, const std::array<std::uint32_t, 3>& grid,
                const Limits& limits) {
  for (const std::uint32_t size : grid) {
    if (size <= limits.workgroups) continue;
    refuse(kernel, "a grid of [{}, {}, {}] workgroups: the adapter takes {} in a dimension",
           grid[0], grid[1], grid[2], limits.workgroups);
  }
}

void check_range(const Pipeline& kernel, std::size_t index, const LaunchOperand& operand,
                 std::uint64_t buffer_bytes, const Limits& limits) {
  const auto name = [&] { return binding_name(kernel, index); };
  if (operand.offset % limits.offset_alignment != 0) {
    throw KernelError(fmt::format("{}: offset {} is not a multiple of the adapter's {}", name(),
                                  operand.offset, limits.offset_alignment));
  }
  if (operand.size == 0) throw KernelError(fmt::format("{}: binds no bytes", name()));
  if (operand.size % 4 != 0)
    throw KernelError(fmt::format("{}: {} bytes are no multiple of 4", name(), operand.size));
  if (operand.offset > buffer_bytes || operand.size > buffer_bytes - operand.offset) {
    throw KernelError(fmt::format("{}: bytes {} to {} lie outside a buffer of {}", name(),
                                  operand.offset, operand.offset + operand.size, buffer_bytes));
  }
  if (operand.size > limits.binding_bytes) {
    throw KernelError(fmt::format("{}: {} bytes are above the adapter's limit of {} for a binding",
                                  name(), operand.size, limits.binding_bytes));
  }
  if (operand.size < kernel.min_bytes[index]) {
    throw KernelError(fmt::format("{}: {} bytes are fewer than the {} that the kernel declares",
                                  name(), operand.size, kernel.min_bytes[index]));
  }
}

// A buffer may be read through several bindings. A buffer that is written may be bound once only.
void check_sharing(const Pipeline& kernel, std::span<const LaunchOperand> operands) {
  for (std::size_t i = 1; i < operands.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (operands[i].id != operands[j].id) continue;
      if (kernel.slots[i].access == Access::read && kernel.slots[j].access == Access::read)
        continue;
      const auto access = [&](std::size_t at) {
        return kernel.slots[at].access == Access::read ? "read" : "read_write";
      };
      refuse(kernel, "@group({}) @binding({}) ({}) and @group({}) @binding({}) ({}) are one buffer",
             kernel.slots[j].group, kernel.slots[j].binding, access(j), kernel.slots[i].group,
             kernel.slots[i].binding, access(i));
    }
  }
}

}  // namespace

std::string binding_name(const Pipeline& kernel, std::size_t index) {
  return fmt::format("{}: @group({}) @binding({})", kernel.label, kernel.slots[index].group,
                     kernel.slots[index].binding);
}

void check_launch(const Pipeline& kernel, std::span<LaunchOperand> operands,
                  std::span<const Binding> bindings, std::span<const std::byte> metadata,
                  const std::array<std::uint32_t, 3>& grid, const Limits& limits) {
  check_grid(kernel, grid, limits);
  if (metadata.size() != kernel.metadata_bytes) {
    refuse(kernel, "{} bytes of metadata were given; the kernel takes {}", metadata.size(),
           kernel.metadata_bytes);
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::uint64_t buffer_bytes = bindings[i].buffer->size();
    const std::uint64_t rest =
        bindings[i].offset < buffer_bytes ? buffer_bytes - bindings[i].offset : 0;
    operands[i].offset = bindings[i].offset;
    operands[i].size = bindings[i].size == 0 ? rest : bindings[i].size;
    check_range(kernel, i, operands[i], buffer_bytes, limits);
  }
  check_sharing(kernel, operands);
}

}  // namespace kiln::wgpu
