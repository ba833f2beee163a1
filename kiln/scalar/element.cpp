#include "kiln/scalar/element.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kiln/scalar/infer.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

bool is_none(const Expr& expr) { return expr.id() == Expr::none().id(); }

/// The size along an axis that a rule counts along. Throws ShapeError if an i32 cannot; of a result
/// without elements nothing is computed. `name` is a function.
template <class Name>
std::int64_t counted(std::string_view op, const Name& name, const Shape& shape, int axis,
                     bool nothing) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (nothing) return std::min(shape[axis], most);
  if (shape[axis] <= most) return shape[axis];
  throw ShapeError(
      fmt::format("{}: {} has {} elements along axis {}; rule 'element' counts up to {}", op,
                  std::string(name()), shape[axis], axis, most));
}

}  // namespace

std::size_t At::normalized(int axis, int rank) const {
  const int from_start = axis < 0 ? axis + rank : axis;
  if (from_start < 0 || from_start >= rank) {
    throw ShapeError(fmt::format("{}: rule 'element' names axis {} of {}", rule_->op_, axis, rank));
  }
  return static_cast<std::size_t>(from_start);
}

Expr At::operator[](int axis) const { return coordinates_[normalized(axis, rank())]; }

Expr At::size(int axis) const {
  return rule_->size(-1, static_cast<int>(normalized(axis, rule_->out_.shape.rank())));
}

Expr At::position() const {
  return rule_->graph_.expr(rule_->graph_.intern({.op = Opcode::position}));
}

Expr At::number(std::int64_t value) const { return rule_->number(static_cast<double>(value)); }

At At::with(int axis, const Expr& coordinate) const {
  At out = *this;
  out.coordinates_[normalized(axis, rank())] = coordinate;
  return out;
}

At At::without(int axis) const {
  At out = *this;
  const auto at = static_cast<std::ptrdiff_t>(normalized(axis, rank()));
  out.coordinates_.erase(out.coordinates_.begin() + at);
  return out;
}

At At::insert(int axis, const Expr& coordinate) const {
  At out = *this;
  const auto at = static_cast<std::ptrdiff_t>(normalized(axis, rank() + 1));
  out.coordinates_.insert(out.coordinates_.begin() + at, coordinate);
  return out;
}

Expr Element::or_else(const Expr& fill) const { return select(inside_, there_, fill); }

int Elements::rank() const { return rule_->in_[operand_].shape.rank(); }

DType Elements::dtype() const { return rule_->in_[operand_].dtype; }

Expr Elements::size(int axis) const {
  const int from_start = axis < 0 ? axis + rank() : axis;
  if (from_start < 0 || from_start >= rank()) {
    throw ShapeError(
        fmt::format("{}: rule 'element' asks for the size of {} along axis {}; it has {}",
                    rule_->op_, rule_->name_of(operand_), axis, rank()));
  }
  return rule_->size(static_cast<std::ptrdiff_t>(operand_), from_start);
}

Element Elements::operator()(const At& at) const { return rule_->read(operand_, at.coordinates_); }

Element Elements::operator()(const Expr& a, const Expr& b, const Expr& c, const Expr& d,
                             const Expr& e, const Expr& f, const Expr& g, const Expr& h) const {
  std::vector<Expr> coordinates;
  for (const Expr* given : {&a, &b, &c, &d, &e, &f, &g, &h}) {
    if (!is_none(*given)) coordinates.push_back(*given);
  }
  return rule_->read(operand_, coordinates);
}

namespace detail {

ElementRule::ElementRule(std::string_view op, std::vector<const Param*> params,
                         const TensorSpec& out, std::span<const TensorSpec> in,
                         std::span<const std::string_view> names)
    : op_(op),
      params_(static_cast<int>(params.size())),
      graph_(std::move(params)),
      out_(out),
      in_(in.begin(), in.end()),
      names_(names.begin(), names.end()) {}

std::string ElementRule::name_of(std::size_t operand) const {
  return operand < names_.size() ? std::string(names_[operand]) : fmt::format("input {}", operand);
}

At ElementRule::at() {
  std::vector<Expr> all;
  for (int axis = 0; axis < out_.shape.rank(); ++axis)
    all.push_back(graph_.expr(graph_.intern({.op = Opcode::coordinate, .args = {axis, -1, -1}})));
  return {*this, std::move(all)};
}

ElementBody ElementRule::finish(const Expr& result) {
  const std::int32_t root = graph_.place(result);
  BodyPtr body = make_body(graph_, static_cast<int>(in_.size()),
                           params_ + static_cast<int>(numbers_.size()), std::array{root});
  for (int axis = 0; axis < out_.shape.rank(); ++axis) {
    if ((body->axes >> axis & 1U) == 0) continue;
    (void)counted(op_, [] { return "the result"; }, out_.shape, axis, out_.shape.elements() == 0);
  }
  return {std::move(body), std::move(numbers_)};
}

Expr ElementRule::number(double value) {
  const int slot = params_ + static_cast<int>(numbers_.size());
  numbers_.push_back(value);
  return graph_.expr(
      graph_.intern({.op = Opcode::param, .args = {slot, -1, -1}, .dtype = DType::i32}));
}

Expr ElementRule::size(std::ptrdiff_t operand, int axis) {
  const std::pair key{operand, axis};
  const auto known = std::ranges::find(sizes_, key, &decltype(sizes_)::value_type::first);
  if (known != sizes_.end()) return graph_.expr(known->second);
  const Shape& shape = operand < 0 ? out_.shape : in_[static_cast<std::size_t>(operand)].shape;
  const auto name = [&] {
    return operand < 0 ? "the result" : name_of(static_cast<std::size_t>(operand));
  };
  const bool nothing = out_.shape.elements() == 0;
  const Expr made = number(static_cast<double>(counted(op_, name, shape, axis, nothing)));
  sizes_.emplace_back(key, made.id());
  return made;
}

/// The node of a coordinate. Where it stands for a producer's coordinate it must know that it is an
/// i32 by itself.
std::int32_t ElementRule::coordinate(const Expr& expr) {
  const std::int32_t id = graph_.place(expr);
  const BodyPtr body = make_body(graph_, static_cast<int>(in_.size()),
                                 params_ + static_cast<int>(numbers_.size()), std::array{id});
  std::vector<DType> dtypes;
  for (const TensorSpec& spec : in_) dtypes.push_back(spec.dtype);
  const BodyTypes types = infer(op_, *body, dtypes, DType::i32);
  if (types.roots[0] != DType::i32) {
    throw DTypeError(fmt::format("{}: a coordinate must be i32, got {}; cast it", op_,
                                 to_string(types.roots[0])));
  }
  if (types.nodes[static_cast<std::size_t>(body->roots[0])]) return id;
  ExprGraph::Node node = graph_.node(id);
  if (node.op == Opcode::param || node.op == Opcode::constant) {
    node.dtype = DType::i32;
    return graph_.intern(node);
  }
  const std::int32_t zero = graph_.intern({.op = Opcode::constant, .dtype = DType::i32});
  return graph_.intern({.op = Opcode::add, .args = {id, zero, -1}});
}

Expr ElementRule::truth(bool value) {
  return graph_.expr(
      graph_.intern({.op = Opcode::constant, .value = value ? 1.0 : 0.0, .dtype = DType::boolean}));
}

/// Whether every such coordinate is inside, whatever the sizes are: the result has the same size
/// there.
bool ElementRule::is_inside(std::int32_t coordinate, std::int64_t size) const {
  const ExprGraph::Node& node = graph_.node(coordinate);
  if (node.op == Opcode::constant) return node.value == 0;
  return node.op == Opcode::coordinate && out_.shape[node.args[0]] == size;
}

Element ElementRule::read(std::size_t operand, const std::vector<Expr>& coordinates) {
  const Shape& shape = in_[operand].shape;
  if (coordinates.size() != shape.size()) {
    throw ShapeError(
        fmt::format("{}: rule 'element' reads {}, of shape {}, with {} coordinates; it must be {}",
                    op_, name_of(operand), to_string(shape), coordinates.size(), shape.size()));
  }
  if (shape.elements() == 0) {
    const std::int32_t zero = graph_.intern({.op = Opcode::constant});
    const Expr none = cast(graph_.expr(zero), in_[operand].dtype);
    return {none, none, truth(false)};
  }
  Expr inside = Expr::none();
  std::int32_t index = -1;
  for (int axis = shape.rank(); axis-- > 0;) {
    std::int32_t at = coordinate(coordinates[static_cast<std::size_t>(axis)]);
    if (!is_inside(at, shape[axis])) {
      const Expr given = graph_.expr(at);
      const Expr end = size(static_cast<std::ptrdiff_t>(operand), axis);
      Expr here = given < end;
      if (graph_.node(at).op != Opcode::coordinate) here = given >= 0 && here;
      inside = is_none(inside) ? here : here && inside;
      at = min(given, end - 1).id();
    }
    index = graph_.intern({.op = Opcode::index, .args = {at, index, -1}});
  }
  const Expr input = graph_.input(static_cast<int>(operand));
  const Expr there =
      graph_.expr(graph_.intern({.op = Opcode::element, .args = {input.id(), index, -1}}));
  if (is_none(inside)) return {there, there, truth(true)};
  return {select(inside, there, 0), there, inside};
}

}  // namespace detail
}  // namespace kiln
