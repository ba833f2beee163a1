#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "kiln/runtime/json_text.hpp"
#include "kiln/runtime/trace.hpp"
#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"

namespace kiln::wgpu {
namespace {

/// The beginning of a file's name. Long labels are cut, since the hash after them tells the kernels
/// apart.
std::string file_name(std::string_view label) {
  constexpr std::size_t longest = 100;  // with hash and extension far below what file systems take
  std::string name(label.substr(0, longest));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '_' && c != '.') c = '-';
  }
  return name;
}

/// Writes a new file. It changes no file that exists, and follows no link. If it cannot be written,
/// this gives false and leaves no file.
bool write_new(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return errno == EEXIST;
  bool whole = true;
  while (whole && !content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
    whole = written > 0 || errno == EINTR;
  }
  whole = ::close(file) == 0 && whole;
  if (!whole) ::unlink(path.c_str());
  return whole;
}

/// Writes a file of the kernel, once, if the environment names a folder. `content` is called only
/// then. If the file cannot be written, a trace says so, and the launch goes on.
template <class Content>
void write_dump(const KernelId& id, std::string_view label, std::string_view extension,
                Content content) {
  const char* folder = std::getenv("KILN_DUMP_KERNELS");
  if (folder == nullptr || *folder == '\0') return;
  const std::string path =
      fmt::format("{}/{}-{:016x}.{}", folder, file_name(label), hash_value(id), extension);
  bool written = false;
  try {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);  // if it failed, opening does too
    written = write_new(path, content());
  } catch (const std::exception&) {
    written = false;
  }
  if (!written) const TraceSpan span("KILN_DUMP_KERNELS cannot write", path);
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
