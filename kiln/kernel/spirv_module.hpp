#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// What is known about a SPIR-V module without compiling it.
struct SpirvModule {
  /// A storage buffer that it declares.
  struct Buffer {
    std::uint32_t set = 0;
    std::uint32_t binding = 0;
    /// Whether it is declared readonly, in the form of Vulkan 1.0 (BufferBlock). wgpu-native knows
    /// no other form.
    bool read_only = false;
    bool operator==(const Buffer&) const = default;
  };
  std::vector<Buffer> buffers;  ///< by set and binding
  bool push_constants = false;
  /// Bytes of all variables in workgroup memory, each rounded up to 16.
  std::uint64_t workgroup_bytes = 0;
  /// An upper bound of how deep its blocks and types nest.
  std::uint64_t depth = 0;
};

/// Reads the module's declarations. `constants` are values of its specialisation constants, by
/// their id. Throws KernelError for words that are no whole module, for a constant that the module
/// does not have or that its type cannot hold, and for workgroup memory of unknown size. It does
/// not validate the module, as spirv-val does.
SpirvModule read_spirv(std::span<const std::uint32_t> words,
                       std::span<const std::pair<std::string, double>> constants = {});

}  // namespace kiln
