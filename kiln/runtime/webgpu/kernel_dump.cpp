#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kiln/runtime/json_text.hpp"
#include "kiln/runtime/webgpu/pipeline.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

/// Writes a file of the kernel, once, if the environment names a folder. `content` is a function,
/// so that nothing is made for nobody.
template <class Content>
void write_dump(const KernelId& id, std::string_view label, std::string_view extension,
                Content content) {
  const char* folder = std::getenv("KILN_DUMP_KERNELS");
  if (folder == nullptr || *folder == '\0') return;
  std::string name(label);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '_' && c != '.') c = '-';
  }
  const auto path =
      std::filesystem::path(folder) / fmt::format("{}-{:016x}.{}", name, hash_value(id), extension);
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);  // if it failed, opening does too
  if (std::filesystem::exists(path, ignored)) return;
  std::ofstream file(path, std::ios::binary);
  file << content();
  file.close();
  if (!file) throw Error(fmt::format("KILN_DUMP_KERNELS: cannot write {}", path.string()));
}

std::string source_of(const KernelId& id) {
  std::string bytes = id.source;
  for (const std::uint32_t word : id.words) {
    const auto four = std::bit_cast<std::array<char, 4>>(word);
    bytes.append(four.data(), four.size());
  }
  return bytes;
}

std::string layout_of(const KernelId& id, std::string_view label) {
  std::string bindings;
  for (const BindingSlot& slot : id.bindings) {
    bindings +=
        fmt::format(R"({}{{"group":{},"binding":{},"read_only":{}}})", bindings.empty() ? "" : ",",
                    slot.group, slot.binding, slot.access == Access::read);
  }
  std::string constants;
  for (const auto& [name, value] : id.constants) {
    constants += fmt::format("{}{}:{}", constants.empty() ? "" : ",", json_text(name),
                             json_text(fmt::format("{}", value)));
  }
  std::string metadata =
      fmt::format(R"("bytes":{},"immediate":{})", id.metadata_bytes, id.metadata_immediate);
  if (!id.metadata_immediate) {
    metadata += fmt::format(R"(,"group":{},"binding":{})", id.metadata_group, id.metadata_binding);
  }
  return fmt::format(
      "{{\"label\":{},\"entry\":{},\"workgroup\":[{},{},{}],\n"
      "\"bindings\":[{}],\n\"metadata\":{{{}}},\n\"constants\":{{{}}}}}\n",
      json_text(label), json_text(id.entry), id.workgroup[0], id.workgroup[1], id.workgroup[2],
      bindings, metadata, constants);
}

}  // namespace

void dump_kernel(const KernelId& id, std::string_view label) {
  write_dump(id, label, id.language == Language::spirv ? "spv" : "wgsl",
             [&] { return source_of(id); });
}

void dump_layout(const KernelId& id, std::string_view label) {
  write_dump(id, label, "json", [&] { return layout_of(id, label); });
}

}  // namespace kiln::wgpu
