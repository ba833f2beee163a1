#include <algorithm>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/dispatch/wgsl/elementwise/elementwise_kernel.hpp"
#include "kiln/dispatch/wgsl/grid.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln::dispatch::wgsl {
namespace {

struct PreparedElementwise : Prepared {
  BodyPtr body;  // keeps the address in the key taken
  BodyTypes types;
  std::uint32_t workgroup = 0;
  std::size_t words = 0;  ///< of a launch's metadata
};

/// Appends everything on which the text depends.
std::string key_of(const ElementwiseLaunch& call) {
  std::string key = "e";
  append_bytes(key, call.body.get());
  for (const RawTensor& t : call.inputs) append_bytes(key, t.dtype);
  for (const RawTensor& t : call.outputs) append_bytes(key, t.dtype);
  call.reads.append_key(key);
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
  const KernelId id = elementwise_kernel(call, out->types, runtime.limits(), out->workgroup);
  out->words = id.metadata_bytes / 4;
  out->kernel = runtime.compile(id, call.op);
  return out;
}

/// More loads under way keep a GPU's memory busy. With few results they leave threads without work.
int steps_of(const ElementwiseLaunch& call, const Limits& limits, std::int64_t elements) {
  constexpr std::int64_t many = 1 << 22;
  bool streams = call.width() == 4 && !call.body->has_index() && !call.body->knows_place();
  for (std::size_t i = 0; i < call.reads.size(); ++i) {
    const Access4 access = call.reads.access(i);
    streams = streams && (access == Access4::linear_quad || access == Access4::single);
  }
  return streams && elements >= many && !limits.software_adapter ? 4 : 1;
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
  words.resize(prepared->words);  // the rest is zeros
  const auto groups =
      ceil_div(elements, std::int64_t{call.width()} * call.steps * prepared->workgroup);
  runtime.launch(prepared->kernel, bindings, std::as_bytes(std::span(words)),
                 folded_grid(groups, runtime.limits()));
}

}  // namespace

void run_elementwise(Runtime& runtime, const ElementwiseWork& work) {
  launch(runtime,
         {work.op, work.body, work.params, work.inputs, work.results,
          Reads("", work.shape, work.layouts, KnownPlaces(*work.body, work.shape)),
          work.overwritten_by},
         work.shape.elements());
}

}  // namespace kiln::dispatch::wgsl
