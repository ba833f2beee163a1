#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/dispatch/op_table.hpp"

namespace kiln::dispatch {
namespace {

/// "WGSL or SPIR-V", each once.
std::string listed(std::span<const Language> languages, std::string_view word) {
  std::vector<std::string_view> names;
  for (const Language language : languages) {
    const std::string_view name = to_string(language);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, word));
}

}  // namespace

UnsupportedError no_accepted_kernel(std::string_view op, const Runtime& runtime,
                                    std::span<const Language> offered) {
  return UnsupportedError(fmt::format(
      "{}: it has no kernel for this device: {}: {} takes kernels in {}, the operation offers {}. "
      "Give it a kernel in {}, or let the device fall back to its reference: device.fallback(true)",
      op, runtime.name(), runtime.adapter(), listed(runtime.languages(), " or "),
      listed(offered, " and "), listed(runtime.languages(), " or ")));
}

}  // namespace kiln::dispatch
