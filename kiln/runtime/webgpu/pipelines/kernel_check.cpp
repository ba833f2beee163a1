#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kiln/kernel/spirv_module.hpp"
#include "kiln/kernel/wgsl_module.hpp"
#include "kiln/runtime/webgpu/pipelines/compile_thread.hpp"
#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

template <class... Args>
[[noreturn]] void refuse(std::string_view label, fmt::format_string<Args...> format,
                         Args&&... args) {
  throw KernelError(fmt::format("{}: {}", label, fmt::format(format, std::forward<Args>(args)...)));
}

void check_workgroup(const KernelId& id, std::string_view label, const Limits& limits) {
  const auto& size = id.workgroup;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (size[axis] != 0 && size[axis] <= limits.workgroup_size[axis]) continue;
    refuse(label, "a workgroup of [{}, {}, {}] does not fit: the adapter takes 1 to [{}, {}, {}]",
           size[0], size[1], size[2], limits.workgroup_size[0], limits.workgroup_size[1],
           limits.workgroup_size[2]);
  }
  const std::uint64_t threads = std::uint64_t{size[0]} * size[1] * size[2];
  if (threads > limits.workgroup_invocations) {
    refuse(label, "a workgroup of [{}, {}, {}] has {} threads; the adapter takes {}", size[0],
           size[1], size[2], threads, limits.workgroup_invocations);
  }
}

/// What `read` gives. Its errors get the label.
template <class F>
auto labelled(std::string_view label, F read) {
  try {
    return read();
  } catch (const KernelError& error) {
    refuse(label, "{}", error.what());
  }
}

void check_depth(std::uint64_t depth, std::string_view label) {
  if (depth <= most_kernel_depth) return;
  refuse(label,
         "its source nests {} deep (brackets, blocks, operators or `else if`s in a row, or "
         "declarations), which may be more than a compiler can take; at most {} are accepted",
         depth, most_kernel_depth);
}

// Drivers do not check this reliably. One hangs; another takes what it does not offer.
void check_workgroup_memory(std::uint64_t bytes, std::string_view label, const Limits& limits) {
  if (bytes <= limits.workgroup_bytes) return;
  refuse(label, "uses {} bytes of workgroup memory; the adapter has {}", bytes,
         limits.workgroup_bytes);
}

void check_module(const KernelId& id, std::string_view label, const Limits& limits) {
  const SpirvModule module = labelled(label, [&] { return read_spirv(id.words, id.constants); });
  // Nothing would set the push constants, so they would be zero.
  if (module.push_constants) {
    refuse(label, "the SPIR-V module has push constants; params are a uniform block");
  }
  check_depth(module.depth, label);
  check_workgroup_memory(module.workgroup_bytes, label, limits);
}

void check_text(const KernelId& id, std::string_view label, const Limits& limits) {
  check_depth(wgsl_depth(wgsl_tokens(id.source)), label);
  const WgslModule module(id.source);
  const auto size = labelled(label, [&] {
    module.check_constants(id.constants);
    return module.workgroup_size(id.entry, id.constants);
  });
  if (size) {
    const auto& said = id.workgroup;
    if (!std::ranges::equal(*size, said)) {
      refuse(label, "its source says @workgroup_size({}, {}, {}), its launch [{}, {}, {}]",
             (*size)[0], (*size)[1], (*size)[2], said[0], said[1], said[2]);
    }
  }
  const std::uint64_t bytes =
      labelled(label, [&] { return module.workgroup_bytes(id.entry, id.constants); });
  check_workgroup_memory(bytes, label, limits);
}

void check_metadata(const KernelId& id, std::string_view label, const Limits& limits,
                    const NativeLimits& native) {
  if (id.metadata_bytes % 16 != 0) {
    refuse(label, "metadata of {} bytes: its size must be a multiple of 16", id.metadata_bytes);
  }
  if (id.metadata_immediate && id.metadata_bytes > limits.immediate_bytes) {
    refuse(label, "metadata of {} bytes does not fit the adapter's {} bytes of immediates",
           id.metadata_bytes, limits.immediate_bytes);
  }
  if (id.metadata_bytes > native.uniform_bytes) {
    refuse(label, "metadata of {} bytes does not fit a uniform binding of {}", id.metadata_bytes,
           native.uniform_bytes);
  }
}

void check_slots(const KernelId& id, std::string_view label, const Limits& limits,
                 const NativeLimits& native) {
  if (id.bindings.size() > limits.storage_buffers) {
    refuse(label, "binds {} buffers; a kernel can bind {} here", id.bindings.size(),
           limits.storage_buffers);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;
  places.reserve(id.bindings.size() + 1);
  for (const BindingSlot& slot : id.bindings) places.emplace_back(slot.group, slot.binding);
  if (id.metadata_bytes != 0 && !id.metadata_immediate) {
    places.emplace_back(id.metadata_group, id.metadata_binding);
  }
  std::ranges::sort(places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [group, binding] = places[i];
    if (group >= native.bind_groups || binding >= native.bindings_per_group) {
      refuse(label, "@group({}) @binding({}): the adapter has {} groups of {} bindings", group,
             binding, native.bind_groups, native.bindings_per_group);
    }
    if (i > 0 && places[i] == places[i - 1])
      refuse(label, "@group({}) @binding({}) is laid out twice", group, binding);
  }
}

}  // namespace

void check_kernel(const KernelId& id, std::string_view label, const Limits& limits,
                  const NativeLimits& native) {
  check_workgroup(id, label, limits);
  if (id.language == Language::spirv) check_module(id, label, limits);
  if (id.language == Language::wgsl) check_text(id, label, limits);
  check_metadata(id, label, limits, native);
  check_slots(id, label, limits, native);
}

std::optional<NeededBytes> parse_needed_bytes(std::string_view message) {
  const auto number_after = [&](std::string_view mark) -> std::optional<std::uint64_t> {
    const std::size_t at = message.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string digits(message.substr(at + mark.size(), 20));
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(digits.c_str(), &end, 10);
    return end == digits.c_str() ? std::nullopt : std::optional(number);
  };
  if (message.find("min_binding_size") == std::string_view::npos) return std::nullopt;
  const auto group = number_after("ResourceBinding { group: ");
  const auto binding = number_after(", binding: ");
  const auto bytes = number_after("Buffer structure size ");
  if (!group || !binding || !bytes) return std::nullopt;
  return NeededBytes{static_cast<std::uint32_t>(*group), static_cast<std::uint32_t>(*binding),
                     *bytes};
}

}  // namespace kiln::wgpu
