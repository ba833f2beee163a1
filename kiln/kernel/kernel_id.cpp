#include "kiln/kernel/kernel_id.hpp"

#include <bit>
#include <functional>
#include <string_view>

namespace kiln {

std::string_view to_string(Language language) {
  switch (language) {
    case Language::wgsl:
      return "WGSL";
    case Language::cpp:
      return "C++";
    case Language::spirv:
      return "SPIR-V";
  }
  return "unknown";
}

std::size_t hash_value(const KernelId& id) {
  std::size_t hash = 0;
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  };
  const auto add_text = [&](std::string_view text) { add(std::hash<std::string_view>{}(text)); };
  add(static_cast<std::uint64_t>(id.language));
  add_text(id.source);
  for (const std::uint32_t word : id.words) add(word);
  add_text(id.entry);
  for (const std::uint32_t size : id.workgroup) add(size);
  for (const BindingSlot& slot : id.bindings) {
    add(slot.group);
    add(slot.binding);
    add(static_cast<std::uint64_t>(slot.access));
  }
  for (const auto& [name, value] : id.constants) {
    add_text(name);
    add(std::bit_cast<std::uint64_t>(value + 0.0));  // -0 equals 0
  }
  add(id.metadata_bytes);
  add(std::uint64_t{id.metadata_immediate} << 1 | std::uint64_t{id.trusted});
  add(id.metadata_group);
  add(id.metadata_binding);
  return hash;
}

}  // namespace kiln
