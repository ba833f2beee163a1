#include "kiln/fusion/value.hpp"

#include <fmt/format.h>

#include <array>

#include "kiln/dispatch/elementwise.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

RawTensor viewed(const RuleCall& call, const RawTensor& x) {
  RawTensor out = x;
  std::optional<Layout> layout = call.table->view(call.op.get(), x.layout);
  if (!layout) {
    out = dispatch::make_dense(x);
    layout = call.table->view(call.op.get(), out.layout);
    if (!layout)
      throw Error(fmt::format("{}: the view rule refuses a dense layout", call.table->name));
  }
  out.layout = *layout;
  return out;
}

BodyPtr add_body() {
  static const BodyPtr body = [] {
    ExprGraph graph;
    return make_body(graph, 2, 0, std::array{(graph.input(0) + graph.input(1)).id()});
  }();
  return body;
}

BodyPtr full_body() {
  static const BodyPtr body = [] {
    const Param number;
    ExprGraph graph({&number});
    return make_body(graph, 0, 1, std::array{graph.place(number)});
  }();
  return body;
}

}  // namespace

std::vector<Value> record(const OpRecord& record, const std::shared_ptr<Runtime>& runtime,
                          std::span<const Value> inputs, std::span<const TensorSpec> out) {
  std::vector<RawTensor> raw;
  raw.reserve(inputs.size());
  for (const Value& v : inputs) raw.push_back(v.raw());
  const auto run = Overload{
      [&](const ElementwiseCall& call) {
        std::vector<DType> dtypes;
        dtypes.reserve(out.size());
        for (const TensorSpec& spec : out) dtypes.push_back(spec.dtype);
        return dispatch::run_elementwise(record.name, runtime, call.body, call.params, raw,
                                         out[0].shape, dtypes);
      },
      [&](const Reduction& reduction) {
        return std::vector{dispatch::run_reduction(record.name, reduction, raw[0], out[0])};
      },
      [&](const RuleCall& call) {
        if (call.table->view != nullptr) return std::vector{viewed(call, raw[0])};
        return dispatch::run_kernel(*call.table, call.op.get(), runtime, raw, out);
      },
  };
  std::vector<Value> values;
  for (RawTensor& t : std::visit(run, record.call)) values.emplace_back(std::move(t));
  return values;
}

Value sum_to(const Value& value, const Shape& to) {
  if (value.shape() == to) return value;
  Reduction reduction{.combine = Combine::sum};
  const int lead = value.shape().rank() - to.rank();
  for (int axis = 0; axis < value.shape().rank(); ++axis) {
    const bool kept = axis >= lead && to[axis - lead] == value.shape()[axis];
    reduction.axes[static_cast<std::size_t>(axis)] = !kept;
  }
  const TensorSpec out{to, value.dtype()};
  return record({"sum_to", reduction}, value.runtime(), {&value, 1}, {&out, 1}).front();
}

Value add(const Value& a, const Value& b) {
  const std::array inputs{a, b};
  return record({"add", ElementwiseCall{add_body(), {}}}, a.runtime(), inputs, {&a.spec(), 1})
      .front();
}

Value full(const std::shared_ptr<Runtime>& runtime, const TensorSpec& spec, double number) {
  return record({"full", ElementwiseCall{full_body(), {number}}}, runtime, {}, {&spec, 1}).front();
}

}  // namespace kiln
