#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/dispatch/wgsl/grid.hpp"
#include "kiln/dispatch/wgsl/rows/rows_kernel.hpp"

namespace kiln::dispatch::wgsl {
namespace {

struct PreparedRows : Prepared {
  std::shared_ptr<const PreparedStages> stages;  // its body keeps the address in the key taken
  std::size_t words = 0;                         ///< of a launch's metadata
};

/// Appends everything on which the text depends.
std::string key_of(const RowPass& pass, std::span<const RawTensor> inputs) {
  std::string key = "w";
  append_bytes(key, pass.call.body.get());
  append_bytes(key, inputs.size());
  append_bytes(key, pass.call.folds.size());
  append_bytes(key, pass.call.out.size());
  for (const Fold& fold : pass.call.folds) {
    append_bytes(key, fold.combine);
    append_bytes(key, fold.element);
    append_bytes(key, fold.value);
  }
  append_bytes(key, pass.kept.rank);
  append_bytes(key, pass.width);
  append_bytes(key, pass.steps);
  append_bytes(key, pass.lanes);
  append_bytes(key, pass.rows);
  append_bytes(key, pass.exact);
  append_bytes(key, pass.adjacent);
  append_bytes(key, pass.looped);
  append_bytes(key, pass.kept_places.used);
  append_bytes(key, pass.kept_places.axes.rank);
  append_bytes(key, pass.kept_places.body_axis);
  for (const RawTensor& t : inputs) append_bytes(key, t.dtype);
  for (const Reach reach : pass.reach) append_bytes(key, reach);
  for (std::size_t r = 0; r < pass.call.out.size(); ++r) {
    append_bytes(key, pass.call.out[r].dtype);
    append_bytes(key, pass.call.is_full(r));
  }
  return key;
}

std::shared_ptr<const PreparedRows> prepare(Runtime& runtime, const RowPass& pass,
                                            std::span<const RawTensor> inputs) {
  auto out = std::make_shared<PreparedRows>();
  std::vector<DType> dtypes;
  for (const RawTensor& t : inputs) dtypes.push_back(t.dtype);
  out->stages = pass.prepared;
  const KernelId id = rows_kernel(pass, dtypes, pass.prepared->types, runtime.limits());
  out->words = id.metadata_bytes / 4;
  out->kernel = runtime.compile(id, pass.call.op);
  return out;
}

}  // namespace

bool takes_rows(Runtime& runtime, const RowsCall& call, std::span<const RawTensor> inputs) {
  return inputs.size() + call.out.size() <= runtime.limits().storage_buffers &&
         row_pass(runtime, call, inputs);
}

void run_rows(const std::shared_ptr<Runtime>& runtime, const RowsCall& call,
              std::span<const RawTensor> inputs, std::span<const RawTensor> results) {
  const auto pass = row_pass(*runtime, call, inputs);
  const auto prepared = KernelCache::of(*runtime).find_or<PreparedRows>(
      key_of(*pass, inputs), [&] { return prepare(*runtime, *pass, inputs); });
  std::vector<Binding> bindings;
  for (const RawTensor& t : inputs) bindings.push_back({t.buffer});
  for (const RawTensor& t : results) bindings.push_back({t.buffer});
  std::vector<std::uint32_t> words;
  words.reserve(64);
  each_number(*pass, pass->prepared->types,
              [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  words.resize(prepared->words);  // the rest is zeros
  runtime->launch(prepared->kernel, bindings, std::as_bytes(std::span(words)),
                  folded_grid(ceil_div(pass->kept.count(), pass->rows), runtime->limits()));
}

}  // namespace kiln::dispatch::wgsl
