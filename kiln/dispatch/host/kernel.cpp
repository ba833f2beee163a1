#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/host/backend.hpp"
#include "kiln/dispatch/host/sink.hpp"
#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

void cpu::Sink::commit(std::int64_t first, std::int64_t count) {
  committed_.fetch_add(count, std::memory_order_relaxed);
  store_.apply_all(first, count, values_ + static_cast<std::size_t>(first) * size_);
}

void cpu::Sink::close() {
  const std::int64_t done = committed_.load();
  if (done == 0) return store_.apply_all(0, elements_, values_);
  if (done == elements_) return;
  throw KernelError(fmt::format(
      "{}: the kernel commits {} of its output's {} elements; commit each once, or none", op_, done,
      elements_));
}

namespace dispatch::host {
namespace {

std::vector<cpu::Input> inputs_of(const OpTable& table, std::span<const RawTensor> inputs) {
  std::vector<cpu::Input> in;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.emplace_back(table.name, table.inputs[i], inputs[i]);
  return in;
}

/// Whether the value may lie in the memory of the epilogue's result, and be changed in place.
bool takes_place(const TensorSpec& value, const FusedEpilogue& epilogue) {
  return epilogue.out.size() == 1 && epilogue.out[0] == value.dtype;
}

std::vector<RawTensor> run_with_epilogue(cpu::CpuRuntime& runtime, const OpTable& table,
                                         const void* op, std::span<const RawTensor> inputs,
                                         const TensorSpec& out, const FusedEpilogue& epilogue) {
  const auto shared = runtime.shared_from_this();
  std::vector<RawTensor> results;
  for (const DType dtype : epilogue.out)
    results.push_back(allocate(table.name, shared, {out.shape, dtype}));
  if (out.shape.elements() == 0) return results;
  const RawTensor value =
      takes_place(out, epilogue) ? results[0] : allocate(table.name, shared, out);
  const ResultStore end(runtime, table.name, &epilogue, out, results);
  cpu::Sink sink(table.name, end, runtime.data_of(table.name, value.buffer), size_of(out.dtype),
                 out.shape.elements());
  const cpu::Output output(table.name, table.outputs[0], value, &sink);
  runtime.run(table.name, [&] {
    table.cpu_kernel(op, inputs_of(table, inputs), {&output, 1});
    output.close();
  });
  return results;
}

}  // namespace

std::vector<RawTensor> run_kernel(const std::shared_ptr<Runtime>& runtime, const OpTable& table,
                                  const void* op, std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out, const FusedEpilogue* epilogue,
                                  std::span<const FusedProducer> producers) {
  if (!producers.empty()) refuse_producer(table, producers[0]);
  cpu::CpuRuntime& host = *cpu::host(*runtime);
  if (epilogue != nullptr) return run_with_epilogue(host, table, op, inputs, out[0], *epilogue);
  std::vector<RawTensor> results;
  std::vector<cpu::Output> outputs;
  for (std::size_t i = 0; i < out.size(); ++i) {
    results.push_back(allocate(table.name, runtime, out[i]));
    outputs.emplace_back(table.name, table.outputs[i], results.back(), nullptr);
  }
  const bool nothing =
      std::ranges::all_of(out, [](const TensorSpec& spec) { return spec.shape.elements() == 0; });
  if (nothing) return results;
  host.run(table.name, [&] {
    table.cpu_kernel(op, inputs_of(table, inputs), outputs);
    for (const cpu::Output& output : outputs) output.close();
  });
  return results;
}

}  // namespace dispatch::host
}  // namespace kiln
