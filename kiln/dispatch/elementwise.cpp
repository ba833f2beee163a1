#include "kiln/dispatch/elementwise.hpp"

#include <algorithm>
#include <array>

#include "kiln/dispatch/cpu/tiles.hpp"
#include "kiln/dispatch/elementwise_kernel.hpp"
#include "kiln/dispatch/grid.hpp"
#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/split.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln::dispatch {
namespace {

struct PreparedElementwise : Prepared {
  BodyPtr body;  // keeps the address in the key taken
  BodyTypes types;
  std::uint32_t workgroup = 0;
};

/// Spells all that the text depends on.
std::string key_of(const ElementwiseLaunch& call) {
  std::string key = "e";
  append_bytes(key, call.body.get());
  append_bytes(key, call.view.rank);
  append_bytes(key, call.view.width);
  for (const RawTensor& t : call.inputs) append_bytes(key, t.dtype);
  for (const RawTensor& t : call.outputs) append_bytes(key, t.dtype);
  for (const Access4 access : call.view.access) append_bytes(key, access);
  for (const std::int32_t output : call.overwritten_by) append_bytes(key, output);
  append_bytes(key, call.steps);
  return key;
}

std::shared_ptr<const PreparedElementwise> prepare(Runtime& runtime,
                                                   const ElementwiseLaunch& call) {
  std::vector<DType> dtypes;
  for (const RawTensor& t : call.inputs) dtypes.push_back(t.dtype);
  auto out = std::make_shared<PreparedElementwise>();
  out->body = call.body;
  out->types = infer(call.op, *call.body, dtypes, call.outputs[0].dtype);
  out->workgroup = std::min(256U, runtime.limits().workgroup_invocations);
  out->kernel = runtime.compile(
      elementwise_kernel(call, out->types, runtime.limits(), out->workgroup), call.op);
  return out;
}

/// More loads on their way at once fill a GPU's memory; where there are few threads they cost some.
int steps_of(const ElementwiseLaunch& call, const Limits& limits, std::int64_t elements) {
  constexpr std::int64_t many = 1 << 22;
  const bool streams = std::ranges::all_of(call.view.access, [](Access4 access) {
    return access == Access4::linear_quad || access == Access4::single;
  });
  return streams && call.view.width == 4 && elements >= many && !limits.cpu ? 4 : 1;
}

void launch(Runtime& runtime, ElementwiseLaunch call, std::int64_t elements) {
  if (elements == 0) return;
  call.steps = steps_of(call, runtime.limits(), elements);
  const auto prepared = KernelCache::of(runtime).find_or<PreparedElementwise>(
      key_of(call), [&] { return prepare(runtime, call); });
  std::vector<Binding> bindings;
  bindings.reserve(call.inputs.size() + call.outputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.is_overwritten(i)) bindings.push_back({call.inputs[i].buffer});
  }
  for (const RawTensor& t : call.outputs) bindings.push_back({t.buffer});
  std::vector<std::uint32_t> words;
  words.reserve(64);
  each_number(call, prepared->types, elements,
              [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  words.resize((words.size() + 3) / 4 * 4);
  const auto groups =
      ceil_div(elements, std::int64_t{call.view.width} * call.steps * prepared->workgroup);
  runtime.launch(prepared->kernel, bindings, std::as_bytes(std::span(words)),
                 folded_grid(groups, runtime.limits()));
}

/// Some results of a call at a time, so that each launch binds no more than the adapter takes.
std::vector<RawTensor> run_in_parts(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                                    const BodyPtr& body, std::span<const double> params,
                                    std::span<const RawTensor> inputs, const Shape& shape,
                                    std::span<const DType> dtypes) {
  std::vector<RawTensor> outputs(dtypes.size());
  for (const BodyPart& part : split(body, inputs, runtime->limits().storage_buffers)) {
    std::vector<RawTensor> in;
    std::vector<RawTensor> out;
    std::vector<Layout> layouts;
    for (const std::size_t i : part.inputs) {
      in.push_back(inputs[i]);
      layouts.push_back(inputs[i].layout.broadcast_to(shape));
    }
    for (const std::size_t r : part.results) {
      out.push_back(allocate(op, runtime, {shape, dtypes[r]}));
      layouts.push_back(out.back().layout);
      outputs[r] = out.back();
    }
    launch(*runtime, {op, part.body, params, in, out, collapse(shape, layouts)}, shape.elements());
  }
  return outputs;
}

void run_on_host(cpu::CpuRuntime& runtime, const TileProgram::Call& call) {
  if (call.shape.elements() == 0) return;
  runtime.run(call.op, [&] { TileProgram(runtime, call).run_all(); });
}

}  // namespace

const BodyPtr& identity_body() {
  static const BodyPtr body = [] {
    ExprGraph graph;
    const std::int32_t root = graph.input(0).id();
    return make_body(graph, 1, 0, std::array{root});
  }();
  return body;
}

std::vector<RawTensor> run_elementwise(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                                       const BodyPtr& body, std::span<const double> params,
                                       std::span<const RawTensor> inputs, const Shape& shape,
                                       std::span<const DType> dtypes,
                                       std::span<const std::int32_t> in_place) {
  const auto overwritten = std::ranges::count_if(in_place, [](std::int32_t i) { return i >= 0; });
  const std::size_t buffers = inputs.size() + dtypes.size() - static_cast<std::size_t>(overwritten);
  if (buffers > runtime->limits().storage_buffers && cpu::host(*runtime) == nullptr)
    return run_in_parts(op, runtime, body, params, inputs, shape, dtypes);
  std::vector<RawTensor> outputs;
  std::vector<Layout> layouts;
  std::vector<std::int32_t> overwritten_by;
  outputs.reserve(dtypes.size());
  layouts.reserve(inputs.size() + dtypes.size());
  for (const RawTensor& t : inputs) layouts.push_back(t.layout.broadcast_to(shape));
  for (std::size_t r = 0; r < dtypes.size(); ++r) {
    if (r < in_place.size() && in_place[r] >= 0) {
      const auto input = static_cast<std::size_t>(in_place[r]);
      overwritten_by.resize(inputs.size(), -1);
      overwritten_by[input] = static_cast<std::int32_t>(r);
      outputs.push_back(inputs[input]);
    } else {
      outputs.push_back(allocate(op, runtime, {shape, dtypes[r]}));
    }
    layouts.push_back(outputs.back().layout);
  }
  if (cpu::CpuRuntime* host = cpu::host(*runtime)) {
    run_on_host(*host, {op, body, params, inputs, outputs, shape, layouts});
  } else {
    launch(*runtime,
           {op, body, params, inputs, outputs, collapse(shape, layouts), std::move(overwritten_by)},
           shape.elements());
  }
  return outputs;
}

RawTensor make_dense(const RawTensor& x) {
  if (x.layout.is_dense() && x.layout.offset == 0) return x;
  return run_elementwise("contiguous", x.runtime, identity_body(), {}, {&x, 1}, x.shape(),
                         {&x.dtype, 1})
      .front();
}

void copy_into(const RawTensor& x, const RawTensor& target) {
  const std::array layouts{x.layout, target.layout};
  if (cpu::CpuRuntime* host = cpu::host(*x.runtime)) {
    return run_on_host(*host,
                       {"copy", identity_body(), {}, {&x, 1}, {&target, 1}, x.shape(), layouts});
  }
  launch(*x.runtime,
         {"copy", identity_body(), {}, {&x, 1}, {&target, 1}, collapse(x.shape(), layouts)},
         x.shape().elements());
}

}  // namespace kiln::dispatch
