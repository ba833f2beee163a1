#include <algorithm>

#include "kiln/dispatch/op_table.hpp"
#include "kiln/dispatch/operands.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"

namespace kiln::dispatch {
namespace {

constexpr unsigned bit(Language language) { return 1U << static_cast<unsigned>(language); }
constexpr unsigned any = ~0U;

unsigned languages_of_kernel(const OpTable& table, const void* op, const Runtime& runtime,
                             std::span<const Operand> inputs, std::span<const TensorSpec> out) {
  unsigned known = table.webgpu_languages->load(std::memory_order_relaxed);
  if (known != 0) return known;
  const std::vector<Operand> in = renamed(table.inputs, inputs);
  try {
    const auto results = operands(table.outputs, out);
    for (const webgpu::Launch& launch : table.webgpu_kernel(op, in, results, runtime.limits()))
      known |= bit(launch.source.language());
  } catch (const Error&) {
    return any;
  }
  table.webgpu_languages->store(known, std::memory_order_relaxed);
  return known;
}

}  // namespace

bool asks_kernel_rule(const OpTable& table, const Runtime& runtime) {
  return table.webgpu_kernel != nullptr && table.webgpu_languages->load() == 0 &&
         cpu::host(runtime) == nullptr;
}

bool has_kernel_for(const OpTable& table, const void* op, const Runtime& runtime,
                    std::span<const Operand> inputs, std::span<const TensorSpec> out) {
  if (cpu::host(runtime) != nullptr) return table.cpu_kernel != nullptr;
  if (table.webgpu_forward != nullptr) return true;  // its launches say what they are
  if (table.webgpu_kernel == nullptr) return false;
  const unsigned offered = languages_of_kernel(table, op, runtime, inputs, out);
  return std::ranges::any_of(runtime.languages(),
                             [&](Language language) { return (offered & bit(language)) != 0; });
}

std::vector<Language> languages_offered(const OpTable& table) {
  std::vector<Language> languages;
  const unsigned known = table.webgpu_languages == nullptr
                             ? 0
                             : table.webgpu_languages->load(std::memory_order_relaxed);
  for (const Language language : {Language::wgsl, Language::spirv}) {
    if ((known & bit(language)) != 0) languages.push_back(language);
  }
  const bool webgpu = table.webgpu_kernel != nullptr || table.webgpu_forward != nullptr;
  if (languages.empty() && webgpu) languages.push_back(Language::wgsl);
  if (table.cpu_kernel != nullptr) languages.push_back(Language::cpp);
  return languages;
}

}  // namespace kiln::dispatch
