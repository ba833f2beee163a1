#include "kiln/dispatch/rows/rows.hpp"

#include "kiln/dispatch/backend.hpp"

namespace kiln::dispatch {

std::vector<Layout> layouts_of(const RowsCall& call, std::span<const RawTensor> inputs) {
  std::vector<Layout> out;
  for (const RawTensor& t : inputs) out.push_back(t.layout.broadcast_to(call.shape));
  for (std::size_t r = 0; r < call.out.size(); ++r) {
    if (call.is_full(r)) out.push_back(Layout::dense(call.shape));
  }
  return out;
}

CoalescedAxes axes_of(const RowsCall& call, std::span<const Layout> layouts, bool reduced) {
  CoalescedAxes out(layouts.size());
  for (int axis = 0; axis < call.shape.rank(); ++axis) {
    if (call.axes[static_cast<std::size_t>(axis)] == reduced) out.push(call.shape, axis, layouts);
  }
  return out;
}

bool takes_rows(Runtime& runtime, const RowsCall& call, std::span<const RawTensor> inputs) {
  return call.shape.elements() > 0 && backend_of(runtime).takes_rows(runtime, call, inputs);
}

std::vector<RawTensor> run_rows(const RowsCall& call, const std::shared_ptr<Runtime>& runtime,
                                std::span<const RawTensor> inputs) {
  std::vector<RawTensor> results;
  for (const TensorSpec& spec : call.out) results.push_back(allocate(call.op, runtime, spec));
  backend_of(*runtime).run_rows(runtime, call, inputs, results);
  return results;
}

}  // namespace kiln::dispatch
