#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/kernel/spirv_module.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// The number in "attribute(3)" at or after `at`. Moves `at` past it.
std::optional<std::uint32_t> attribute(std::string_view text, std::string_view name,
                                       std::size_t at) {
  const std::size_t found = text.find(name, at);
  if (found == std::string_view::npos) return std::nullopt;
  std::size_t begin = text.find('(', found);
  if (begin == std::string_view::npos) return std::nullopt;
  begin = text.find_first_not_of(" \t", begin + 1);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::string without_comments(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i).starts_with("/*")) {
      i = std::min(text.find("*/", i), text.size() - 2) + 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

/// The storage buffers that a kernel declares, by (group, binding).
std::vector<BindingSlot> declared_bindings(std::string_view source) {
  const std::string text = without_comments(source);
  std::vector<BindingSlot> slots;
  for (std::size_t at = text.find("var<storage"); at != std::string::npos;
       at = text.find("var<storage", at + 1)) {
    const std::size_t begin = text.find_last_of(";{}", at);
    const std::string_view attributes =
        std::string_view(text).substr(begin == std::string::npos ? 0 : begin + 1,
                                      at - (begin == std::string::npos ? 0 : begin + 1));
    const std::string_view mode = std::string_view(text).substr(at, text.find('>', at) - at);
    const auto group = attribute(attributes, "@group", 0);
    const auto binding = attribute(attributes, "@binding", 0);
    if (!group || !binding) continue;  // the compiler reports it
    slots.push_back(
        {*group, *binding,
         mode.find("read_write") != std::string_view::npos ? Access::read_write : Access::read});
  }
  std::ranges::sort(slots, {}, [](const BindingSlot& s) { return std::pair(s.group, s.binding); });
  return slots;
}

/// The storage buffers of a SPIR-V module, by (set, binding).
std::vector<BindingSlot> module_bindings(std::string_view op, const KernelSource& source) {
  try {
    std::vector<BindingSlot> slots;
    for (const SpirvModule::Buffer& buffer : read_spirv(source.words()).buffers) {
      slots.push_back(
          {buffer.set, buffer.binding, buffer.read_only ? Access::read : Access::read_write});
    }
    return slots;
  } catch (const KernelError& error) {
    throw KernelError(fmt::format("{}: {}: {}", op, source.text().name, error.what()));
  }
}

RenderedSource render(const KernelSource& source, const std::array<std::uint32_t, 3>& workgroup,
                      std::span<const RawTensor> buffers) {
  SourceTemplate::Variables library;
  if (!buffers.empty()) library["elem"] = std::string(wgsl_storage_type(buffers[0].dtype));
  const std::array<std::string, 3> axes{"x", "y", "z"};
  for (std::size_t i = 0; i < 3; ++i)
    library["workgroup_size_" + axes[i]] = std::to_string(workgroup[i]);
  RenderedSource rendered = SourceTemplate(source.text()).render(source.variables(), library);
  // On the first line, so that line numbers stay.
  const auto half = [](const RawTensor& t) { return t.dtype == DType::f16; };
  if (std::ranges::any_of(buffers, half)) rendered.text.insert(0, "enable f16; ");
  return rendered;
}

}  // namespace

RawKernel raw_kernel(std::string_view op, const KernelSource& source,
                     const std::array<std::uint32_t, 3>& workgroup,
                     std::span<const RawTensor> buffers) {
  RawKernel kernel{.id = {.language = source.language(),
                          .words = source.words(),
                          .entry = source.entry_point(),
                          .workgroup = workgroup,
                          .constants = source.constants()},
                   .source = {}};
  if (source.language() == Language::spirv) {
    kernel.source.name = source.text().name;
    kernel.id.workgroup = {1, 1, 1};  // the module has its own
    kernel.id.bindings = module_bindings(op, source);
  } else {
    kernel.source = render(source, workgroup, buffers);
    kernel.id.source = kernel.source.text;
    kernel.id.bindings = declared_bindings(kernel.source.text);
  }
  return kernel;
}

}  // namespace kiln::dispatch::wgsl
