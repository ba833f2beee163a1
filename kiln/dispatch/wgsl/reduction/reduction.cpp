#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/dispatch/wgsl/grid.hpp"
#include "kiln/dispatch/wgsl/reduction/reduction_kernel.hpp"

namespace kiln::dispatch::wgsl {
namespace {

struct PreparedReduction : Prepared {
  BodyPtr before;  // keeps the addresses in the key taken
  BodyPtr epilogue;
  ReductionTypes types;
  std::size_t words = 0;  ///< of a launch's metadata
};

/// Appends everything on which the text depends.
std::string key_of(const ReductionLaunch& pass) {
  std::string key = "r";
  append_bytes(key, pass.combine);
  append_bytes(key, pass.variant);
  append_bytes(key, pass.before.get());
  append_bytes(key, pass.element);
  append_bytes(key, pass.value);
  append_bytes(key, pass.kept.rank);
  append_bytes(key, pass.reduced.rank);
  append_bytes(key, pass.width);
  append_bytes(key, pass.workgroup);
  append_bytes(key, pass.lanes);
  for (const RawTensor& t : pass.inputs) append_bytes(key, t.dtype);
  for (const Reach reach : pass.reach) append_bytes(key, reach);
  for (const KnownPlaces* places : {&pass.kept_places, &pass.reduced_places}) {
    append_bytes(key, places->used);
    append_bytes(key, places->axes.rank);
    append_bytes(key, places->body_axis);
  }
  pass.store.append_key(key);
  return key;
}

std::shared_ptr<const PreparedReduction> prepare(Runtime& runtime, const ReductionLaunch& pass) {
  auto out = std::make_shared<PreparedReduction>();
  if (pass.before) {
    std::vector<DType> dtypes;
    for (const RawTensor& t : pass.inputs) dtypes.push_back(t.dtype);
    out->before = pass.before;
    out->types.before = infer(pass.op, *pass.before, dtypes, pass.element);
  }
  out->epilogue = pass.store.fused_body();
  out->types.epilogue = pass.store.types();
  const KernelId id = reduction_kernel(pass, out->types, runtime.limits());
  out->words = id.metadata_bytes / 4;
  out->kernel = runtime.compile(id, pass.op);
  return out;
}

std::vector<Binding> bindings_of(const ReductionLaunch& pass) {
  std::vector<Binding> bindings;
  const auto bind = [&](std::span<const RawTensor> tensors) {
    for (const RawTensor& t : tensors) bindings.push_back({t.buffer});
  };
  bind(pass.inputs);
  bind(pass.store.inputs());
  bind(pass.outputs);
  return bindings;
}

std::vector<std::uint32_t> words_of(const ReductionLaunch& pass, const ReductionTypes& types) {
  std::vector<std::uint32_t> words;
  words.reserve(64);
  each_number(pass, types.before,
              [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  const std::vector<std::uint32_t> more = pass.store.words(types.epilogue);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void launch(Runtime& runtime, const ReductionLaunch& pass) {
  const auto prepared = KernelCache::of(runtime).find_or<PreparedReduction>(
      key_of(pass), [&] { return prepare(runtime, pass); });
  std::vector<std::uint32_t> words = words_of(pass, prepared->types);
  words.resize(prepared->words);  // the rest is zeros
  const std::int64_t jobs = pass.kept.count() * pass.splits;
  const bool rows = pass.variant == Variant::rows;
  const std::int64_t groups = ceil_div(jobs, rows ? pass.workgroup / pass.lanes : pass.workgroup);
  runtime.launch(prepared->kernel, bindings_of(pass), std::as_bytes(std::span(words)),
                 folded_grid(groups, runtime.limits()));
}

}  // namespace

void run_reduction(const std::shared_ptr<Runtime>& runtime, const ReductionCall& call,
                   std::span<const RawTensor> inputs, const TensorSpec& out,
                   const FusedEpilogue* epilogue, std::span<const RawTensor> results) {
  const auto store_of = [&](const TensorSpec& value, const FusedEpilogue* fused) {
    return Store(call.op, value, fused, {"epilogue", {"y", value.dtype}});
  };
  ReductionPass pass = first_pass(call, inputs, runtime->limits());
  if (pass.splits > 1) {
    const TensorSpec parts = parts_of(pass);
    pass.outputs = {allocate(call.op, runtime, parts)};
    launch(*runtime, {pass, store_of(parts, nullptr)});
    pass = second_pass(pass, call.reduction.scale, runtime->limits());
  }
  pass.value = out.dtype;
  pass.outputs = {results.begin(), results.end()};
  launch(*runtime, {pass, store_of(out, epilogue)});
}

}  // namespace kiln::dispatch::wgsl
