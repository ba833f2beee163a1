#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

/// What can be told of a SPIR-V module without compiling it.
struct SpirvModule {
  /// A storage buffer that it declares.
  struct Buffer {
    std::uint32_t set = 0;
    std::uint32_t binding = 0;
    /// Declared readonly, in the form of Vulkan 1.0 (BufferBlock): wgpu-native knows no other.
    bool read_only = false;
    bool operator==(const Buffer&) const = default;
  };
  std::vector<Buffer> buffers;  ///< by set and binding
  bool push_constants = false;
};

/// Reads the module's declarations. Throws KernelError for words that are none, or not all of one.
/// Not a validator: spirv-val is one.
SpirvModule read_spirv(std::span<const std::uint32_t> words);

}  // namespace kiln
