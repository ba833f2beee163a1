#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/wgsl/kernel/bindings.hpp"
#include "kiln/kernel/spirv_module.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {
namespace {

class Binder {
 public:
  Binder(const OpTable& table, const webgpu::Launch& launch, std::span<const Operand> in,
         std::span<const Operand> out)
      : table_(table), launch_(launch), in_(in), out_(out) {}

  RenderedLaunch run(const ParamFields& params, const Limits& limits) && {
    require_rounds(table_, launch_, limits);
    check_contract();
    Metadata metadata;
    RenderedLaunch result;
    result.patches = add_params(table_, launch_, params, metadata);
    result.words = metadata.values();
    result.source.name = launch_.source.text().name;
    result.id = {.language = Language::spirv,
                 .words = launch_.source.words(),
                 .entry = launch_.source.entry_point(),
                 .bindings = slots(),
                 .constants = launch_.source.constants(),
                 .metadata_bytes = static_cast<std::uint32_t>(result.words.size() * 4),
                 .metadata_group = 1,
                 .trusted = launch_.trusted};
    check_module(result.id.bindings);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t size = launch_.grid[axis];
      if (size < 0 || size > limits.workgroups) {
        fail(
            fmt::format("grid {} x {} x {} is above the adapter's limit of {} workgroups in a "
                        "dimension, and SPIR-V kernels are not folded",
                        launch_.grid[0], launch_.grid[1], launch_.grid[2], limits.workgroups));
      }
      result.grid[axis] = static_cast<std::uint32_t>(size);
    }
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw KernelError(fmt::format("{}: {}: {}", table_.name, launch_.source.text().name, what));
  }

  void check_contract() const {
    const auto refuse = [&](std::string_view field) {
      fail(fmt::format("a SPIR-V kernel has no '{}': nothing is generated into it", field));
    };
    if (launch_.store) refuse("store");
    if (launch_.strided) refuse("strided");
    if (!launch_.vec4.empty()) refuse("vec4");
    if (!launch_.repeated.empty()) refuse("repeated");
  }

  /// The slots in the order of the buffers: inputs, scratch, outputs.
  std::vector<BindingSlot> slots() const {
    std::vector<BindingSlot> slots;
    std::uint32_t binding = 0;
    for (; binding < in_.size(); ++binding) slots.push_back({0, binding, Access::read});
    const auto first_output = static_cast<std::uint32_t>(in_.size());
    binding += static_cast<std::uint32_t>(out_.size());
    for (std::size_t i = 0; i < launch_.scratch.size(); ++i)
      slots.push_back({0, binding++, Access::read_write});
    for (std::uint32_t i = 0; i < out_.size(); ++i)
      slots.push_back({0, first_output + i, Access::read_write});
    return slots;
  }

  /// wgpu-native would refuse it, too, but could not name the operand.
  void check_module(std::span<const BindingSlot> slots) const {
    SpirvModule module;
    try {
      module = read_spirv(launch_.source.words());
    } catch (const KernelError& error) {
      fail(error.what());
    }
    for (const SpirvModule::Buffer& buffer : module.buffers) {
      const bool bound = std::ranges::any_of(slots, [&](const BindingSlot& slot) {
        return slot.group == buffer.set && slot.binding == buffer.binding;
      });
      if (!bound) {
        fail(
            fmt::format("it declares a buffer at set = {}, binding = {}; the operation has {} "
                        "inputs, {} outputs and {} scratch buffers at set = 0, binding = 0 to {}",
                        buffer.set, buffer.binding, in_.size(), out_.size(), launch_.scratch.size(),
                        slots.size() - 1));
      }
      if (buffer.binding < in_.size() && !buffer.read_only) {
        fail(fmt::format(
            "input '{}' (set = 0, binding = {}) is not readonly: declare it so, and "
            "make the module for Vulkan 1.0 (wgpu-native does not see it in newer ones)",
            in_[buffer.binding].name, buffer.binding));
      }
    }
  }

  const OpTable& table_;
  const webgpu::Launch& launch_;
  std::span<const Operand> in_;
  std::span<const Operand> out_;
};

}  // namespace

RenderedLaunch bind_module(const OpTable& table, const webgpu::Launch& launch,
                           std::span<const Operand> in, std::span<const Operand> out,
                           const ParamFields& params, const Limits& limits) {
  return Binder(table, launch, in, out).run(params, limits);
}

}  // namespace kiln::dispatch::wgsl
