#include "kiln/dispatch/wgsl/kernel/launch_epilogue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {

bool mentions_operand(const webgpu::Launch& launch, std::string_view name) {
  const auto in_value = [&](const auto& variable) { return mentions(variable.second, name); };
  return mentions(launch.source.text().text, name) ||
         std::ranges::any_of(launch.source.variables(), in_value);
}

bool wants_vec4(const webgpu::Launch& launch, std::string_view name) {
  return std::ranges::find(launch.vec4, name) != launch.vec4.end();
}

std::optional<LaunchEpilogue> launch_epilogue(const OpTable& table, const webgpu::Launch& launch,
                                              std::span<const Operand> in, const Operand& out) {
  if (!launch.store) return std::nullopt;
  const Epilogue& e = *launch.store;
  const auto fail = [&](const std::string& what) {
    throw KernelError(fmt::format("{}: {}: {}", table.name, launch.source.text().name, what));
  };
  if (e.body->inputs != static_cast<int>(e.inputs.size()) + 1) {
    fail(fmt::format("the epilogue takes {} values besides the stored one, but names {} operands",
                     e.body->inputs - 1, e.inputs.size()));
  }
  std::vector<StoredArray> operands;
  std::vector<bool> store_alone;
  std::vector<Layout> layouts;
  for (const std::string& name : e.inputs) {
    const auto at = std::ranges::find_if(in, [&](const Operand& t) { return t.name == name; });
    if (at == in.end()) fail(fmt::format("the epilogue names '{}', which is no input", name));
    if (at->shape() != out.shape()) {
      fail(fmt::format(
          "the epilogue reads '{}' {} where it stores '{}' {}; the shapes must be equal", name,
          to_string(at->shape()), out.name, to_string(out.shape())));
    }
    operands.push_back({name, at->dtype, wants_vec4(launch, name)});
    store_alone.push_back(!mentions_operand(launch, name));
    layouts.push_back(at->layout);
  }
  return LaunchEpilogue{e.body, std::move(operands), std::move(store_alone),
                        Reads("kiln_e_", out.shape(), layouts)};
}

}  // namespace kiln::dispatch::wgsl
