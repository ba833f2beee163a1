#include "kiln/dispatch/cpu/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kiln/support/error.hpp"

namespace kiln {

void cpu::Sink::commit(std::int64_t first, std::int64_t count) {
  committed_.fetch_add(count, std::memory_order_relaxed);
  finish_.apply_all(first, count, values_ + static_cast<std::size_t>(first) * size_);
}

void cpu::Sink::close() {
  const std::int64_t done = committed_.load();
  if (done == 0) return finish_.apply_all(0, elements_, values_);
  if (done == elements_) return;
  throw KernelError(fmt::format(
      "{}: the kernel commits {} of its output's {} elements; commit each once, or none", op_, done,
      elements_));
}

namespace dispatch {
namespace {

std::vector<cpu::Input> inputs_of(const OpTable& table, std::span<const RawTensor> inputs) {
  std::vector<cpu::Input> in;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.emplace_back(table.name, table.inputs[i], inputs[i]);
  return in;
}

/// Whether the value may lie where the finish's result goes: it is then changed in place.
bool takes_place(const TensorSpec& value, const Finish& finish) {
  return finish.out.size() == 1 && finish.out[0] == value.dtype;
}

std::vector<RawTensor> run_finished(cpu::CpuRuntime& runtime, const OpTable& table, const void* op,
                                    std::span<const RawTensor> inputs, const TensorSpec& out,
                                    const Finish& finish) {
  const auto shared = runtime.shared_from_this();
  std::vector<RawTensor> results;
  for (const DType dtype : finish.out)
    results.push_back(allocate(table.name, shared, {out.shape, dtype}));
  if (out.shape.elements() == 0) return results;
  const RawTensor value = takes_place(out, finish) ? results[0] : allocate(table.name, shared, out);
  const HostFinish end(runtime, table.name, &finish, out, results);
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

std::vector<RawTensor> run_cpu_kernel(cpu::CpuRuntime& runtime, const OpTable& table,
                                      const void* op, std::span<const RawTensor> inputs,
                                      std::span<const TensorSpec> out, const Finish* finish) {
  if (finish != nullptr) return run_finished(runtime, table, op, inputs, out[0], *finish);
  std::vector<RawTensor> results;
  std::vector<cpu::Output> outputs;
  for (std::size_t i = 0; i < out.size(); ++i) {
    results.push_back(allocate(table.name, runtime.shared_from_this(), out[i]));
    outputs.emplace_back(table.name, table.outputs[i], results.back(), nullptr);
  }
  const bool nothing =
      std::ranges::all_of(out, [](const TensorSpec& spec) { return spec.shape.elements() == 0; });
  if (nothing) return results;
  runtime.run(table.name, [&] {
    table.cpu_kernel(op, inputs_of(table, inputs), outputs);
    for (const cpu::Output& output : outputs) output.close();
  });
  return results;
}

}  // namespace dispatch
}  // namespace kiln
