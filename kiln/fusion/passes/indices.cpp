// Reads at computed places: which of them strides can express, and how the others become loads.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>

#include "kiln/fusion/passes/rewrite.hpp"

namespace kiln::fusion {

std::vector<std::int32_t> BodyBuilder::coordinates(std::int32_t index) const {
  std::vector<std::int32_t> out;
  for (; index >= 0; index = composer_.node(index).args[1])
    out.push_back(composer_.node(index).args[0]);
  return out;
}

std::vector<std::int32_t> BodyBuilder::own_coordinates(const Shape& shape) {
  std::vector<std::int32_t> out;
  for (int axis = 0; axis < shape.rank(); ++axis)
    out.push_back(composer_.intern({.op = Opcode::coordinate, .args = {axis, -1, -1}}));
  return out;
}

std::int32_t BodyBuilder::number(std::int64_t value) {
  const auto slot = static_cast<std::int32_t>(params_.size());
  // Another number than any that the operations have.
  params_.push_back(
      {std::numeric_limits<std::int32_t>::min() + slot, DType::i32, static_cast<double>(value)});
  return composer_.intern({.op = Opcode::param, .args = {slot, -1, -1}, .dtype = DType::i32});
}

std::optional<std::vector<std::int32_t>> BodyBuilder::coordinates_through(
    const Shape& inner, const Layout& view, std::span<const std::int32_t> outer) {
  if (view == Layout::dense(inner)) return std::vector(outer.begin(), outer.end());
  const auto walk = walk_of(inner, view);
  if (!walk) return std::nullopt;
  std::vector<std::int32_t> out(inner.size(), -1);
  for (std::size_t axis = 0; axis < outer.size(); ++axis) {
    if (walk->axes[axis] >= 0) out[at(walk->axes[axis])] = outer[axis];
  }
  for (std::size_t axis = 0; axis < out.size(); ++axis) {
    const std::int64_t start = walk->start[axis];
    if (out[axis] < 0) {
      out[axis] = number(start);
    } else if (start != 0) {
      out[axis] = composer_.intern({.op = Opcode::add, .args = {out[axis], number(start), -1}});
    }
  }
  return out;
}

/// The layout over `shape` that finds the same elements. Nothing if a coordinate is computed.
std::optional<Layout> BodyBuilder::strided(const Layout& layout, std::int32_t index,
                                           const Shape& shape) const {
  const std::vector<std::int32_t> all = coordinates(index);
  const auto is_own = [&](std::int32_t a) {
    const ExprGraph::Node& node = composer_.node(all[at(a)]);
    return node.op == Opcode::coordinate && node.args[0] == a;
  };
  if (layout.shape == shape &&
      std::ranges::all_of(std::views::iota(0, static_cast<int>(all.size())), is_own))
    return layout;
  Layout out{.shape = shape, .offset = layout.offset};
  int axis = 0;
  for (const std::int32_t coordinate : all) {
    const ExprGraph::Node& node = composer_.node(coordinate);
    const std::int64_t size = layout.shape[axis];
    const std::int64_t step = layout.stride(axis++);
    if (size == 1 || step == 0) continue;
    if (node.op == Opcode::constant && node.value >= 0 && node.value < static_cast<double>(size)) {
      out.offset += static_cast<std::int64_t>(node.value) * step;
    } else if (node.op == Opcode::coordinate && shape[node.args[0]] <= size) {
      out.strides[at(node.args[0])] += step;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::int32_t BodyBuilder::element(const Use& use, std::int32_t index, const Shape& shape) {
  if (const auto layout = strided(use.layout, index, shape)) return input(Use{use.value, *layout});
  const std::int32_t from = input(use);
  const std::int32_t node = composer_.intern({.op = Opcode::element, .args = {from, index, -1}});
  dtypes_.emplace_back(node, graph_.spec(use.value).dtype);
  return node;
}

void read_in_place(const Graph& graph, Node& node, int buffers) {
  auto& work = std::get<Elementwise>(node.work);
  const auto built_with = [&](bool in_place) {
    BodyBuilder builder(graph);
    std::vector<std::int32_t> in;
    for (const Use& use : node.in) in.push_back(builder.input(use));
    const auto element = [&](int slot, std::int32_t index) {
      return in_place ? builder.element(node.in[at(slot)], index, work.shape) : -1;
    };
    return builder.finish(builder.add(work.body, in, dtypes_of(graph, node.out),
                                      {.coordinates = {}, .element = element}));
  };
  BodyBuilder::Built built = built_with(true);
  // What is read both in place and elsewhere is bound twice.
  if (static_cast<int>(built.in.size() + node.out.size()) > buffers) built = built_with(false);
  work.body = std::move(built.body);
  node.in = std::move(built.in);
}

namespace {

/// Replaces the elements of one body by loads.
class Loads {
 public:
  Loads(const BoundBody& body, std::span<const Use> uses, int lead)
      : body_(*body.body), params_(body.params), uses_(uses), lead_(lead) {}

  BoundBody run() && {
    std::vector<std::int32_t> inputs;
    for (int i = 0; i < body_.inputs; ++i) inputs.push_back(composer_.input(i));
    std::vector<int> slots(params_.size());
    std::iota(slots.begin(), slots.end(), 0);
    const auto element = [&](int slot, std::int32_t index) {
      return composer_.intern(
          {.op = Opcode::load, .args = {inputs[at(slot)], position(slot, index), -1}});
    };
    const auto roots =
        composer_.copy(body_, inputs, slots, {.coordinates = {}, .element = element});
    const int params = static_cast<int>(params_.size());
    return {composer_.finish(body_.inputs, params, roots), std::move(params_)};
  }

 private:
  /// Where in its buffer the element of an input is. Sizes, strides and offsets are numbers of the
  /// launch; which strides are 0 or 1 is part of the body.
  std::int32_t position(int slot, std::int32_t index) {
    const Layout& layout = uses_[at(slot - lead_)].layout;
    std::int32_t sum = number(slot, -1, layout.offset);
    for (int axis = 0; index >= 0; ++axis, index = composer_.node(index).args[1]) {
      const std::int64_t step = layout.stride(axis);
      if (layout.shape[axis] == 1 || step == 0) continue;
      std::int32_t term = composer_.intern({.op = Opcode::cast,
                                            .args = {composer_.node(index).args[0], -1, -1},
                                            .dtype = DType::u32});
      if (step != 1)
        term = composer_.intern({.op = Opcode::mul, .args = {term, number(slot, axis, step), -1}});
      sum = composer_.intern({.op = Opcode::add, .args = {sum, term, -1}});
    }
    return sum;
  }

  std::int32_t number(int slot, int axis, std::int64_t value) {
    const auto [known, added] = numbers_.try_emplace({slot, axis}, 0);
    if (added) {
      known->second = composer_.intern({.op = Opcode::param,
                                        .args = {static_cast<std::int32_t>(params_.size()), -1, -1},
                                        .dtype = DType::u32});
      params_.push_back({-1, DType::u32, static_cast<double>(value)});
    }
    return known->second;
  }

  const Body& body_;
  std::vector<ParamUse> params_;
  std::span<const Use> uses_;
  int lead_;
  Composer composer_;
  std::map<std::pair<int, int>, std::int32_t> numbers_;
};

}  // namespace

BoundBody with_loads(const BoundBody& body, std::span<const Use> uses, int lead) {
  return body.body->has_index() ? Loads(body, uses, lead).run() : body;
}

}  // namespace kiln::fusion
