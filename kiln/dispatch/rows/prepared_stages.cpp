#include "kiln/dispatch/rows/prepared_stages.hpp"

namespace kiln::dispatch {
namespace {

/// Whether the operand differs within a row.
bool is_wide(const RowsCall& call, const RawTensor& operand) {
  const Layout layout = operand.layout.broadcast_to(call.shape);
  for (int axis = 0; axis < call.shape.rank(); ++axis) {
    if (call.axes[static_cast<std::size_t>(axis)] && call.shape[axis] != 1 &&
        layout.stride(axis) != 0)
      return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const PreparedStages> prepare_stages(Runtime& runtime, const RowsCall& call,
                                                     std::span<const RawTensor> inputs,
                                                     bool keeps) {
  std::vector<char> wide;
  std::vector<DType> dtypes;
  for (const RawTensor& t : inputs) {
    wide.push_back(is_wide(call, t) ? 1 : 0);
    dtypes.push_back(t.dtype);
  }
  for (const Fold& fold : call.folds) dtypes.push_back(fold.value);
  std::string key = "s";
  append_bytes(key, call.body.get());
  append_bytes(key, call.body->axes == 0 ? 0UL : call.axes.to_ulong());
  append_bytes(key, keeps);
  append_bytes(key, inputs.size());
  for (const char differs : wide) append_bytes(key, differs);
  for (const DType dtype : dtypes) append_bytes(key, dtype);
  return KernelCache::of(runtime).find_or<PreparedStages>(key, [&] {
    auto out = std::make_shared<PreparedStages>();
    out->body = call.body;
    out->types = infer(call.op, *call.body, dtypes, DType::f32);
    out->stages = RowStages(call, wide, out->types, keeps);
    out->wide = std::move(wide);
    return out;
  });
}

}  // namespace kiln::dispatch
