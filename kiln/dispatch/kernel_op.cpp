#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/bindings.hpp"
#include "kiln/dispatch/client.hpp"
#include "kiln/dispatch/elementwise.hpp"
#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/op_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

/// One operation at given attributes, dtypes and layouts: all but the buffers and the Params.
struct PreparedKernel : Prepared {
  std::vector<std::uint32_t> words;
  std::vector<RenderedLaunch::Patch> patches;
  std::array<std::uint32_t, 3> grid{};
  std::vector<TensorSpec> scratch;
  std::vector<bool> dense;  ///< which inputs are copied unless they lie so
  bool zeroed = false;
};

std::string key_of(const OpTable& table, const void* op, std::span<const RawTensor> inputs,
                   std::span<const TensorSpec> out) {
  std::string key = "k";
  append_bytes(key, &table);
  table.append_key(op, key);
  for (const RawTensor& t : inputs) {
    append_bytes(key, t.dtype);
    append_bytes(key, t.layout.offset);
    append_bytes(key, t.layout.shape.rank());
    for (int axis = 0; axis < t.shape().rank(); ++axis) {
      append_bytes(key, t.shape()[axis]);
      append_bytes(key, t.layout.stride(axis));
    }
  }
  for (const TensorSpec& spec : out) {
    append_bytes(key, spec.dtype);
    append_bytes(key, spec.shape.rank());
    for (const std::int64_t size : spec.shape) append_bytes(key, size);
  }
  return key;
}

std::vector<Operand> operands(std::span<const std::string_view> names,
                              std::span<const RawTensor> tensors) {
  std::vector<Operand> out;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    out.push_back({names[i], tensors[i].dtype, tensors[i].layout});
  return out;
}

std::vector<Operand> operands(std::span<const std::string_view> names,
                              std::span<const TensorSpec> specs) {
  std::vector<Operand> out;
  for (std::size_t i = 0; i < specs.size(); ++i)
    out.push_back({names[i], specs[i].dtype, Layout::dense(specs[i].shape)});
  return out;
}

const webgpu::Launch& choose(const OpTable& table, const std::vector<webgpu::Launch>& candidates) {
  std::string reasons;
  for (const webgpu::Launch& candidate : candidates) {
    if (candidate.declined.empty()) return candidate;
    reasons += "\n  " + candidate.declined;
  }
  throw KernelError(fmt::format("{}: every kernel declines:{}", table.name, reasons));
}

std::shared_ptr<const PreparedKernel> prepare(Runtime& runtime, const OpTable& table,
                                              const void* op, std::span<const RawTensor> inputs,
                                              std::span<const TensorSpec> specs,
                                              std::span<const Param* const> params) {
  std::vector<Operand> in = operands(table.inputs, inputs);
  const std::vector<Operand> out = operands(table.outputs, specs);
  const auto candidates = table.webgpu_kernel(op, in, out, runtime.limits());
  const webgpu::Launch& launch = choose(table, candidates);
  const auto names = [](const std::vector<std::string>& list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
  };
  std::vector<bool> dense;
  for (Operand& t : in) {
    dense.push_back(!launch.strided || names(launch.dense, t.name) ||
                    (launch.store && names(launch.store->inputs, t.name)));
    if (dense.back()) t.layout = Layout::dense(t.layout.shape);
  }
  RenderedLaunch rendered = render(table, launch, in, out, params, runtime.limits());
  auto prepared = std::make_shared<PreparedKernel>();
  try {
    prepared->kernel = runtime.compile(rendered.id, table.name);
  } catch (const KernelError& error) {
    throw KernelError(rendered.source.locate(error.what()));
  }
  prepared->words = std::move(rendered.words);
  prepared->patches = std::move(rendered.patches);
  prepared->grid = rendered.grid;
  prepared->dense = std::move(dense);
  prepared->zeroed = launch.zeroed;
  for (const Scratch& s : launch.scratch) prepared->scratch.push_back({Shape{s.elements}, s.dtype});
  return prepared;
}

bool nothing_to_compute(std::span<const TensorSpec> out) {
  return std::ranges::all_of(out,
                             [](const TensorSpec& spec) { return spec.shape.elements() == 0; });
}

std::vector<RawTensor> launch(const OpTable& table, const void* op,
                              const std::shared_ptr<Runtime>& runtime,
                              std::span<const RawTensor> inputs, std::span<const TensorSpec> out) {
  std::vector<RawTensor> results;
  for (const TensorSpec& spec : out) results.push_back(allocate(table.name, runtime, spec));
  if (nothing_to_compute(out)) return results;
  std::vector<const Param*> params;
  table.params(op, params);
  const auto prepared = KernelCache::of(*runtime).find_or<PreparedKernel>(
      key_of(table, op, inputs, out),
      [&] { return prepare(*runtime, table, op, inputs, out, params); });

  std::vector<RawTensor> keep(inputs.begin(), inputs.end());
  std::vector<Binding> bindings;
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (prepared->dense[i]) keep[i] = make_dense(keep[i]);
    bindings.push_back({keep[i].buffer});
  }
  for (const TensorSpec& spec : prepared->scratch) {
    keep.push_back(allocate(table.name, runtime, spec));
    bindings.push_back({keep.back().buffer});
  }
  for (const RawTensor& t : results) {
    if (prepared->zeroed) runtime->fill(t.buffer, 0, (bytes_of(t.spec()) + 3) / 4 * 4, 0);
    bindings.push_back({t.buffer});
  }
  std::vector<std::uint32_t> words = prepared->words;
  for (const auto& patch : prepared->patches)
    words[patch.word] = word_of(table.name, params[patch.param]->value, DType::f32);
  runtime->launch(prepared->kernel, bindings, std::as_bytes(std::span(words)), prepared->grid);
  return results;
}

std::vector<RawTensor> forward(const OpTable& table, const void* op,
                               const std::shared_ptr<Runtime>& runtime,
                               std::span<const RawTensor> inputs, std::span<const TensorSpec> out) {
  webgpu::Client client(runtime, table.name);
  std::vector<RawTensor> results = table.webgpu_forward(op, client, inputs, out);
  check_results({table.name, table.outputs, "webgpu_forward"}, runtime, results, out);
  return results;
}

}  // namespace

std::vector<RawTensor> run_kernel(const OpTable& table, const void* op,
                                  const std::shared_ptr<Runtime>& runtime,
                                  std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out) {
  return table.webgpu_forward != nullptr ? forward(table, op, runtime, inputs, out)
                                         : launch(table, op, runtime, inputs, out);
}

}  // namespace kiln::dispatch
