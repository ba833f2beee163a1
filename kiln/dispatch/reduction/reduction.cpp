#include "kiln/dispatch/reduction/reduction.hpp"

#include <fmt/format.h>

#include <limits>

#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

void require_counts(const ReductionCall& call, std::size_t inputs) {
  (void)call.shape.elements();  // throws if the joined axes would overflow
  const std::size_t takes = call.before ? static_cast<std::size_t>(call.before->inputs) : 1;
  const std::size_t params = call.before ? static_cast<std::size_t>(call.before->params) : 0;
  if (takes == inputs && params == call.params.size()) return;
  throw KernelError(
      fmt::format("{}: what is reduced takes {} inputs and {} params, {} and {} are given", call.op,
                  takes, params, inputs, call.params.size()));
}

}  // namespace

std::uint32_t neutral_word(Combine combine, DType element) {
  const bool least = combine == Combine::max;
  if (combine == Combine::sum || combine == Combine::norm) return 0;
  if (is_float(element)) {
    const double inf = std::numeric_limits<double>::infinity();
    return word_of("", least ? -inf : inf, DType::f32);
  }
  if (element == DType::i32) return least ? 0x8000'0000U : 0x7fff'ffffU;
  return least ? 0U : ~0U;
}

std::vector<RawTensor> run_reduction(const ReductionCall& call,
                                     const std::shared_ptr<Runtime>& runtime,
                                     std::span<const RawTensor> inputs, const TensorSpec& out,
                                     const FusedEpilogue* epilogue) {
  require_counts(call, inputs.size());
  if (epilogue != nullptr) require_fits(call.op, *epilogue, out.shape);
  std::vector<RawTensor> results;
  for (const DType dtype : epilogue == nullptr ? std::vector{out.dtype} : epilogue->out)
    results.push_back(allocate(call.op, runtime, {out.shape, dtype}));
  if (out.shape.elements() > 0)
    backend_of(*runtime).run_reduction(runtime, call, inputs, out, epilogue, results);
  return results;
}

RawTensor run_reduction(std::string_view op, const Reduction& reduction, const RawTensor& x,
                        const TensorSpec& out) {
  const ReductionCall call{.op = op, .reduction = reduction, .shape = x.shape(), .dtype = x.dtype};
  return run_reduction(call, x.runtime, {&x, 1}, out).front();
}

}  // namespace kiln::dispatch
