#include "kiln/fusion/record.hpp"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <set>

#include "kiln/dispatch/words.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

BodyPtr body_of(int inputs, int params, Expr (*make)(ExprGraph&)) {
  ExprGraph graph;
  return make_body(graph, inputs, params, std::array{graph.place(make(graph))});
}

Value dense(const Device& device, const Value& x) {
  static const BodyPtr& body = *new BodyPtr(body_of(1, 0, [](ExprGraph& g) { return g.input(0); }));
  return record({"contiguous", ElementwiseCall{body, {}}}, device, {&x, 1}, {&x.spec(), 1}).front();
}

/// Gives the view of the layout that the view rule returns. Its shape must be what the output rule
/// said.
Value viewed(const RuleCall& call, const Device& device, const Value& x, const TensorSpec& out) {
  const std::string_view op = call.table->name;
  const auto through = [&](const Value& value, const Layout& layout) {
    const TensorSpec given{layout.shape, value.dtype()};
    const auto text = [&] {
      return fmt::format("{}: the result is {} by the output rule, but the view rule gave {}", op,
                         to_string(out), to_string(given));
    };
    if (given.shape != out.shape) throw ShapeError(text());
    if (given.dtype != out.dtype) throw DTypeError(text());
    return Stream::of(device.runtime()).view(op, value, layout);
  };
  if (const auto layout = call.table->view(call.op.get(), x.layout())) return through(x, *layout);
  const Value copy = dense(device, x);
  const auto layout = call.table->view(call.op.get(), copy.layout());
  if (!layout) {
    throw Error(fmt::format("{}: the view rule must take a dense layout, but gives none for {}", op,
                            to_string(copy.layout())));
  }
  return through(copy, *layout);
}

}  // namespace

std::string_view lasting_name(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string>& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return *names.insert(name).first;
}

std::vector<Value> record(const OpRecord& record, const Device& device,
                          std::span<const Value> inputs, std::span<const TensorSpec> out) {
  const auto* rule = std::get_if<RuleCall>(&record.call);
  if (rule != nullptr && rule->table->view != nullptr)
    return {viewed(*rule, device, inputs[0], out[0])};
  return Stream::of(device.runtime()).append(record, device, inputs, out);
}

Value sum_to(const Device& device, const Value& value, const Shape& to) {
  if (value.shape() == to) return value;
  Reduction reduction{.combine = Combine::sum};
  const int lead = value.shape().rank() - to.rank();
  for (int axis = 0; axis < value.shape().rank(); ++axis) {
    const bool kept = axis >= lead && to[axis - lead] == value.shape()[axis];
    reduction.axes[static_cast<std::size_t>(axis)] = !kept;
  }
  const TensorSpec out{to, value.dtype()};
  return record({"sum_to", reduction}, device, {&value, 1}, {&out, 1}).front();
}

Value add(const Device& device, const Value& a, const Value& b) {
  static const BodyPtr& body =
      *new BodyPtr(body_of(2, 0, [](ExprGraph& g) { return g.input(0) + g.input(1); }));
  const std::array inputs{a, b};
  return record({"add", ElementwiseCall{body, {}}}, device, inputs, {&a.spec(), 1}).front();
}

Value full(const Device& device, const TensorSpec& spec, double number) {
  dispatch::require_number("full", number, spec.dtype);
  static const BodyPtr& body = *new BodyPtr(body_of(0, 1, [](ExprGraph& g) {
    return g.expr(g.intern({.op = Opcode::param, .args = {0, -1, -1}}));
  }));
  return record({"full", ElementwiseCall{body, {number}}}, device, {}, {&spec, 1}).front();
}

}  // namespace kiln
