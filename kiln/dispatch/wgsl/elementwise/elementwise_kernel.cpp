#include "kiln/dispatch/wgsl/elementwise/elementwise_kernel.hpp"

#include <set>

#include "kiln/dispatch/wgsl/store_text.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// The array of an output, and of an input that the output overwrites.
std::string output_array(std::size_t output) { return fmt::format("y{}", output); }

/// The arrays of the inputs, then of the outputs.
std::vector<StoredArray> arrays_of(const ElementwiseLaunch& call) {
  std::vector<StoredArray> arrays;
  const auto add = [&](std::string name, DType dtype) {
    const bool vec4 = call.reads.is_quad(arrays.size());
    arrays.push_back({std::move(name), dtype, vec4});
  };
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    add(call.is_overwritten(i) ? output_array(static_cast<std::size_t>(call.overwritten_by[i]))
                               : fmt::format("x{}", i),
        call.inputs[i].dtype);
  }
  for (std::size_t r = 0; r < call.outputs.size(); ++r) add(output_array(r), call.outputs[r].dtype);
  return arrays;
}

std::string declare(KernelId& id, const ElementwiseLaunch& call,
                    std::span<const StoredArray> arrays) {
  std::string text;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (call.is_overwritten(i)) continue;
    text += declare_array(id, 0, static_cast<std::uint32_t>(id.bindings.size()),
                          i < call.inputs.size() ? Access::read : Access::read_write, arrays[i]);
  }
  return text;
}

}  // namespace

KernelId elementwise_kernel(const ElementwiseLaunch& call, const BodyTypes& types,
                            const Limits& limits, std::uint32_t workgroup) {
  KernelId id;
  const std::vector<StoredArray> arrays = arrays_of(call);
  const std::string declared = declare(id, call, arrays);
  Metadata metadata;
  each_number(call, types, 0, [&](auto name, std::string_view type, std::uint32_t word) {
    metadata.add(name(), type, word);
  });
  const auto outputs = arrays.begin() + std::ssize(call.inputs);
  const auto width = static_cast<std::uint32_t>(call.width());
  std::set<std::string> helpers;
  const std::string store = computed_store({.op = call.op,
                                            .name = "store",
                                            .value = std::nullopt,
                                            .body = *call.body,
                                            .types = types,
                                            .param_prefix = "params.p",
                                            .operands = {arrays.begin(), outputs},
                                            .reads = {&call.reads},
                                            .results = {outputs, arrays.end()},
                                            .one = width == 1,
                                            .four = width == 4,
                                            .steps = {call.steps, width * workgroup, "params.n"}},
                                           helpers);
  metadata.add_zero_for(helpers);
  const std::string params =
      metadata.declare(limits, 0, static_cast<std::uint32_t>(id.bindings.size()), id);
  id.workgroup = {workgroup, 1, 1};
  id.trusted = true;  // every index is below the sizes for which the operands were laid out
  id.source = fmt::format(
      "{}{}{}{}{}"
      "@compute @workgroup_size({})\n"
      "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
      "vec3<u32>,\n"
      "        @builtin(local_invocation_id) local: vec3<u32>) {{\n"
      "  let index = ((group.y * groups.x + group.x) * {}u + local.x) * {}u;\n"
      "  if (index < params.n) {{ store{}(index); }}\n}}\n",
      enable_f16(declared), declared, params, wgsl_helpers(helpers), store, workgroup,
      workgroup * static_cast<std::uint32_t>(call.steps), width, width == 4 ? "4" : "");
  return id;
}

}  // namespace kiln::dispatch::wgsl
