#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// The language a kernel is written in. A runtime states which ones it accepts.
enum class Language : std::uint8_t { wgsl, cpp, spirv };

/// "WGSL", "C++", "SPIR-V".
std::string_view to_string(Language language);

/// How one buffer is bound.
enum class Access : std::uint8_t { read, read_write };

/// One entry of a kernel's binding layout.
struct BindingSlot {
  std::uint32_t group = 0;
  std::uint32_t binding = 0;
  Access access = Access::read;
  bool operator==(const BindingSlot&) const = default;
};

/// Everything in which compiled kernels can differ. Two kernels are the same if and only if their
/// ids are equal; names do not matter. Dtypes and workgroup size are in it twice, since the
/// rendered source spells them, too.
struct KernelId {
  Language language = Language::wgsl;
  std::string source;                ///< rendered: no placeholder is left
  std::vector<std::uint32_t> words;  ///< of a SPIR-V module, which has no text
  std::string entry = "main";
  std::array<std::uint32_t, 3> workgroup{1, 1, 1};
  std::vector<BindingSlot> bindings;
  /// WGSL `override` values by name, SPIR-V specialisation constants by their id.
  std::vector<std::pair<std::string, double>> constants;
  std::uint32_t metadata_bytes = 0;  ///< size of the metadata block, a multiple of 16
  bool metadata_immediate =
      false;  ///< whether the block is passed as immediates, or in a uniform ring
  std::uint32_t metadata_group = 0;  ///< where the ring is bound, if it is
  std::uint32_t metadata_binding = 0;
  bool trusted = false;  ///< the adapter's own bounds and loop checks are off
  bool operator==(const KernelId&) const = default;
};

/// A hash over all fields; equality decides.
std::size_t hash_value(const KernelId& id);

}  // namespace kiln
