#include "kiln/dispatch/rows/rows.hpp"

#include "kiln/dispatch/backend.hpp"

namespace kiln::dispatch {

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
