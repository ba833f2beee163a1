#include "kiln/dispatch/host/backend.hpp"

#include <limits>

#include "kiln/dispatch/host/tiles.hpp"

namespace kiln::dispatch::host {
namespace {

std::size_t most_operands(const Runtime&) { return std::numeric_limits<std::size_t>::max(); }

bool has_rule(const OpTable& table) { return table.cpu_kernel != nullptr; }

Fusable fusable(const OpTable& table, const void*, Runtime&, std::span<const Operand>,
                std::span<const TensorSpec> out) {
  return {.store = has_rule(table) && out.size() == 1};
}

}  // namespace

void run_elementwise(Runtime& runtime, const ElementwiseWork& work) {
  cpu::CpuRuntime& host = *cpu::host(runtime);
  host.run(work.op, [&] { TileProgram(host, work).run_all(); });
}

const Backend backend{.most_operands = most_operands,
                      .run_elementwise = run_elementwise,
                      .run_reduction = run_reduction,
                      .takes_rows = takes_rows,
                      .run_rows = run_rows,
                      .has_rule = has_rule,
                      .language = Language::cpp,
                      .asks_rule = [](const OpTable&) { return false; },
                      .run_kernel = run_kernel,
                      .fusable = fusable};

}  // namespace kiln::dispatch::host
