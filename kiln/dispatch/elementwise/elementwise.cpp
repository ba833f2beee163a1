#include "kiln/dispatch/elementwise/elementwise.hpp"

#include <algorithm>
#include <array>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/elementwise/split.hpp"

namespace kiln::dispatch {
namespace {

void run(Runtime& runtime, const ElementwiseWork& work) {
  if (work.shape.elements() > 0) backend_of(runtime).run_elementwise(runtime, work);
}

/// Computes some of the call's results at a time, so that no work has more operands than the
/// runtime takes.
std::vector<RawTensor> run_in_parts(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                                    const BodyPtr& body, std::span<const double> params,
                                    std::span<const RawTensor> inputs, const Shape& shape,
                                    std::span<const DType> dtypes, std::size_t most) {
  std::vector<RawTensor> outputs(dtypes.size());
  for (const BodyPart& part : split(body, inputs, most)) {
    std::vector<RawTensor> in;
    std::vector<RawTensor> out;
    std::vector<Layout> layouts;
    for (const std::size_t i : part.inputs) {
      in.push_back(inputs[i]);
      layouts.push_back(seen_by(*part.body, in.size() - 1, inputs[i].layout, shape));
    }
    for (const std::size_t r : part.results) {
      out.push_back(allocate(op, runtime, {shape, dtypes[r]}));
      layouts.push_back(out.back().layout);
      outputs[r] = out.back();
    }
    run(*runtime, {op, part.body, params, in, out, shape, layouts});
  }
  return outputs;
}

}  // namespace

const BodyPtr& identity_body() {
  static const BodyPtr& body = *new BodyPtr([] {
    ExprGraph graph;
    const std::int32_t root = graph.input(0).id();
    return make_body(graph, 1, 0, std::array{root});
  }());
  return body;
}

std::vector<RawTensor> run_elementwise(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                                       const BodyPtr& body, std::span<const double> params,
                                       std::span<const RawTensor> inputs, const Shape& shape,
                                       std::span<const DType> dtypes,
                                       std::span<const std::int32_t> in_place) {
  const auto overwritten = std::ranges::count_if(in_place, [](std::int32_t i) { return i >= 0; });
  const std::size_t operands =
      inputs.size() + dtypes.size() - static_cast<std::size_t>(overwritten);
  const std::size_t most = backend_of(*runtime).most_operands(*runtime);
  if (operands > most) return run_in_parts(op, runtime, body, params, inputs, shape, dtypes, most);
  std::vector<RawTensor> outputs;
  std::vector<Layout> layouts;
  std::vector<std::int32_t> overwritten_by;
  outputs.reserve(dtypes.size());
  layouts.reserve(inputs.size() + dtypes.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    layouts.push_back(seen_by(*body, i, inputs[i].layout, shape));
  for (std::size_t r = 0; r < dtypes.size(); ++r) {
    if (r < in_place.size() && in_place[r] >= 0) {
      const auto input = static_cast<std::size_t>(in_place[r]);
      overwritten_by.resize(inputs.size(), -1);
      overwritten_by[input] = static_cast<std::int32_t>(r);
      outputs.push_back(inputs[input]);
    } else {
      outputs.push_back(allocate(op, runtime, {shape, dtypes[r]}));
    }
    layouts.push_back(outputs.back().layout);
  }
  run(*runtime, {op, body, params, inputs, outputs, shape, layouts, overwritten_by});
  return outputs;
}

RawTensor make_dense(const RawTensor& x) {
  if (x.layout.is_dense() && x.layout.offset == 0) return x;
  return run_elementwise("contiguous", x.runtime, identity_body(), {}, {&x, 1}, x.shape(),
                         {&x.dtype, 1})
      .front();
}

void copy_into(const RawTensor& x, const RawTensor& target) {
  const std::array layouts{x.layout, target.layout};
  run(*x.runtime, {"copy", identity_body(), {}, {&x, 1}, {&target, 1}, x.shape(), layouts});
}

}  // namespace kiln::dispatch
