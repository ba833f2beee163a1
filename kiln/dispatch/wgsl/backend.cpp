#include "kiln/dispatch/wgsl/backend.hpp"

#include "kiln/dispatch/kernel/operands.hpp"
#include "kiln/dispatch/wgsl/kernel/candidates.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// The limits that every WebGPU adapter has.
constexpr Limits promised{.buffer_bytes = std::uint64_t{256} << 20,
                          .binding_bytes = std::uint64_t{128} << 20,
                          .storage_buffers = 8,
                          .workgroup_bytes = 16384,
                          .workgroup_invocations = 256,
                          .workgroup_size = {256, 256, 64},
                          .workgroups = 65535,
                          .immediate_bytes = 0,
                          .offset_alignment = 256};

std::size_t most_operands(const Runtime& runtime) { return runtime.limits().storage_buffers; }

bool has_rule(const OpTable& table) {
  return table.webgpu_kernel != nullptr || table.webgpu_forward != nullptr;
}

bool asks_rule(const OpTable& table) {
  return table.webgpu_kernel != nullptr && table.webgpu_forward == nullptr;
}

std::vector<Language> languages(const OpTable& table, const void* op, Runtime* runtime,
                                std::span<const Described> inputs,
                                std::span<const TensorSpec> out) {
  std::vector<Operand> in;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.push_back({name_of(table.inputs, i), inputs[i].dtype, inputs[i].layout});
  const auto languages_of = [](const std::vector<webgpu::Launch>& launches) {
    std::vector<Language> offered;
    for (const webgpu::Launch& launch : launches) offered.push_back(launch.source.language());
    return offered;
  };
  if (runtime != nullptr) return languages_of(candidates(*runtime, table, op, in, out)->launches);
  return languages_of(table.webgpu_kernel(op, in, operands(table.outputs, out), promised));
}

}  // namespace

const Backend backend{.most_operands = most_operands,
                      .run_elementwise = run_elementwise,
                      .run_reduction = run_reduction,
                      .takes_rows = takes_rows,
                      .run_rows = run_rows,
                      .has_rule = has_rule,
                      .language = Language::wgsl,
                      .asks_rule = asks_rule,
                      .languages = languages,
                      .run_kernel = run_kernel,
                      .fusable = fusable,
                      .raw_kernel = raw_kernel};

}  // namespace kiln::dispatch::wgsl
