#include "kiln/dispatch/kernel/kernel_op.hpp"

#include <fmt/format.h>

#include <atomic>

#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/kernel/languages.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {

std::uint64_t next_op_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::vector<RawTensor> run_kernel(const OpTable& table, const void* op,
                                  const std::shared_ptr<Runtime>& runtime,
                                  std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out, const FusedEpilogue* epilogue,
                                  std::span<const FusedProducer> producers) {
  const Backend& backend = backend_of(*runtime);
  if (!backend.has_rule(table)) {
    std::vector<Described> in;
    for (const RawTensor& t : inputs) in.push_back({t.dtype, t.layout});
    throw no_accepted_kernel(table.name, *runtime, languages_offered(table, op, *runtime, in, out));
  }
  if (epilogue != nullptr) require_fits(table.name, *epilogue, out[0].shape);
  require_fits(table.name, producers, inputs);
  return backend.run_kernel(runtime, table, op, inputs, out, epilogue, producers);
}

void refuse_producer(const OpTable& table, const FusedProducer& producer) {
  throw KernelError(
      fmt::format("{0}: '{1}' takes no producer: a kernel in WGSL must read it through load_{1} "
                  "alone",
                  table.name, table.inputs[producer.operand]));
}

Fusable fusable(const OpTable& table, const void* op, Runtime& runtime,
                std::span<const Operand> inputs, std::span<const TensorSpec> out) {
  return backend_of(runtime).fusable(table, op, runtime, inputs, out);
}

}  // namespace kiln::dispatch
