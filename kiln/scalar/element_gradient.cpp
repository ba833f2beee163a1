#include "kiln/scalar/element_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "kiln/scalar/compose.hpp"
#include "kiln/scalar/opcode_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln::detail {
namespace {

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

/// A coordinate of a read: sign * scale * (the result's along `axis`) + the terms, modulo
/// `modulus`.
struct Affine {
  int axis = -1;  ///< none for a number
  int sign = 1;
  std::int32_t scale = -1;  ///< nodes of the forward body; -1: none
  std::int32_t modulus = -1;
  std::vector<std::pair<std::int32_t, int>> terms;  ///< each with its sign
};

class Derivation {
 public:
  Derivation(std::string_view op, std::string_view name, const ElementBody& forward, int params,
             std::span<const TensorSpec> in, const TensorSpec& out, std::size_t operand)
      : op_(op),
        name_(name),
        forward_(forward),
        graph_(*forward.body->graph),
        params_(params),
        in_(in),
        out_(out),
        operand_(static_cast<std::int32_t>(operand)),
        shape_(in[operand].shape),
        numbers_(forward.numbers) {}

  ElementGradient run() && {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (graph_.nodes()[i].op == Opcode::element) reads_.push_back(static_cast<std::int32_t>(i));
    }
    const BodyPtr slopes = adjoint(*without_reads());
    std::vector<std::size_t> wanted;
    for (std::size_t r = 0; r < reads_.size(); ++r) {
      const bool flat = slopes->graph->node(slopes->roots[r]).op == Opcode::constant;
      if (slot_of(reads_[r]) == operand_ && !flat) wanted.push_back(r);
    }
    if (wanted.empty()) return {{}, shape_, {}};
    ElementGradient out = solved_all(*slopes, wanted);
    if (out.made.body != nullptr && !out.made.body->position) return out;
    // The result's places do not follow from the operand's, or the number of a result is needed.
    out = {{}, shape_, {}};
    require_places();
    for (const std::size_t r : wanted) {
      const std::int32_t places = place_node(r);
      out.scattered.push_back({finished(places), {}});
      start();
      const std::int32_t value = slope(*slopes, r, {});
      out.scattered.back().values = finished(
          composer_.intern({.op = Opcode::cast, .args = {value, -1, -1}, .dtype = DType::f32}));
    }
    return out;
  }

 private:
  /// Begins another function of the operands and the incoming gradient.
  void start() {
    composer_ = {};
    inputs_.clear();
    numbers_ = forward_.numbers;
    for (int i = 0; i <= static_cast<int>(in_.size()); ++i) inputs_.push_back(composer_.input(i));
  }
  ElementBody finished(std::int32_t root) {
    const int count = params_ + static_cast<int>(numbers_.size());
    BodyPtr body = composer_.finish(static_cast<int>(inputs_.size()), count, std::array{root});
    return {std::move(body), std::move(numbers_)};
  }

  /// The gradient without scattering; a null body if a read has no way back.
  ElementGradient solved_all(const Body& slopes, const std::vector<std::size_t>& wanted) {
    start();
    std::int32_t sum = -1;
    for (const std::size_t r : wanted) {
      const std::int32_t part = contribution(slopes, r);
      if (!solvable_) return {{}, shape_, {}};
      sum = sum < 0 ? part : make(Opcode::add, sum, part);
    }
    Shape over;
    for (const int axis : summed_) over.push_back(out_.shape[axis]);
    for (const std::int64_t size : shape_) over.push_back(size);
    return {finished(sum), over, {}};
  }

  void require_places() const {
    if (shape_.elements() <= std::int64_t{no_place}) return;
    throw ShapeError(
        fmt::format("{}: {} is {}; a gradient that is scattered to it counts up to {} elements",
                    op_, name_, to_string(shape_), no_place));
  }

  /// The number of the element that read `r` reads; `no_place` outside of the operand.
  std::int32_t place_node(std::size_t r) {
    start();
    std::int32_t inside = -1;
    std::int32_t sum = natural(0);
    std::int64_t step = shape_.elements();
    int axis = 0;
    for (std::int32_t index = graph_.node(reads_[r]).args[1]; index >= 0;
         index = graph_.node(index).args[1], ++axis) {
      const std::int32_t bounded = graph_.node(index).args[0];
      const bool checked = graph_.node(bounded).op == Opcode::min;
      const std::int32_t c = copied(checked ? graph_.node(bounded).args[0] : bounded);
      step /= shape_[axis];
      if (checked) {
        const std::int32_t here = make(Opcode::logical_and, make(Opcode::less_equal, whole(0), c),
                                       make(Opcode::less, c, number(shape_[axis])));
        inside = inside < 0 ? here : make(Opcode::logical_and, inside, here);
      }
      if (shape_[axis] == 1) continue;
      std::int32_t term = to_natural(c);
      if (step != 1) term = make(Opcode::mul, term, to_natural(number(step)));
      sum = make(Opcode::add, sum, term);
    }
    return inside < 0 ? sum : make(Opcode::select, inside, sum, natural(no_place));
  }
  std::int32_t natural(double value) {
    return composer_.intern({.op = Opcode::constant, .value = value, .dtype = DType::u32});
  }
  std::int32_t to_natural(std::int32_t id) {
    return composer_.intern({.op = Opcode::cast, .args = {id, -1, -1}, .dtype = DType::u32});
  }

  /// For a coordinate without a way back.
  Affine no_way() const {
    solvable_ = false;
    return {};
  }

  [[nodiscard]] std::int32_t slot_of(std::int32_t read) const {
    return graph_.node(graph_.node(read).args[0]).args[0];
  }
  std::int32_t make(Opcode op, std::int32_t a, std::int32_t b = -1, std::int32_t c = -1) {
    return composer_.intern({.op = op, .args = {a, b, c}});
  }
  std::int32_t whole(double value) {
    return composer_.intern({.op = Opcode::constant, .value = value, .dtype = DType::i32});
  }
  std::int32_t number(std::int64_t value) {
    const auto slot = static_cast<std::int32_t>(params_ + static_cast<int>(numbers_.size()));
    numbers_.push_back(static_cast<double>(value));
    return composer_.intern({.op = Opcode::param, .args = {slot, -1, -1}, .dtype = DType::i32});
  }
  [[nodiscard]] std::vector<int> same_params(const Body& body) const {
    std::vector<int> slots(static_cast<std::size_t>(body.params));
    std::iota(slots.begin(), slots.end(), 0);
    return slots;
  }

  /// The function with each read as an input.
  [[nodiscard]] BodyPtr without_reads() const {
    Composer composer;
    int read = 0;
    const auto element = [&](int, std::int32_t) { return composer.input(read++); };
    const std::vector<std::int32_t> unread(in_.size(), composer.input(0));
    const auto roots = composer.copy(*forward_.body, unread, same_params(*forward_.body),
                                     {.coordinates = {}, .element = element});
    return composer.finish(static_cast<int>(reads_.size()), forward_.body->params, roots);
  }

  /// Whether the node is the same for every element.
  [[nodiscard]] bool is_number(std::int32_t id) const {
    const ExprGraph::Node& node = graph_.node(id);
    if (node.op == Opcode::constant || node.op == Opcode::param) return true;
    const auto args = operands(node);
    const bool leaf = args.empty() || node.op == Opcode::element;
    return !leaf && std::ranges::all_of(args, [&](std::int32_t arg) { return is_number(arg); });
  }

  /// A number whose value is known, because it follows from shapes and attributes.
  [[nodiscard]] std::optional<double> value_of(std::int32_t id) const {
    const ExprGraph::Node& node = graph_.node(id);
    if (node.op == Opcode::constant) return node.value;
    if (node.op != Opcode::param || node.args[0] < params_) return std::nullopt;
    return forward_.numbers[at(node.args[0] - params_)];
  }

  [[nodiscard]] Affine parse(std::int32_t id) const {
    const ExprGraph::Node& node = graph_.node(id);
    if (is_number(id)) return {.terms = {{id, 1}}};
    switch (node.op) {
      case Opcode::coordinate:
        return {.axis = node.args[0]};
      case Opcode::neg:
        return negated(parse(node.args[0]));
      case Opcode::add:
        return joined(parse(node.args[0]), parse(node.args[1]));
      case Opcode::sub:
        return joined(parse(node.args[0]), negated(parse(node.args[1])));
      case Opcode::mul: {
        const bool first = is_number(node.args[0]);
        Affine x = parse(node.args[first ? 1 : 0]);
        const std::int32_t scale = node.args[first ? 0 : 1];
        if (!is_number(scale) || value_of(scale).value_or(0) == 0 || x.scale >= 0 ||
            !x.terms.empty())
          return no_way();
        x.scale = scale;
        return x;
      }
      default:
        return no_way();
    }
  }
  static Affine negated(Affine x) {
    x.sign = -x.sign;
    for (auto& term : x.terms) term.second = -term.second;
    return x;
  }
  [[nodiscard]] Affine joined(Affine x, const Affine& y) const {
    if (x.axis >= 0 && y.axis >= 0) return no_way();
    if (y.axis >= 0) {
      x.axis = y.axis;
      x.sign = y.sign;
      x.scale = y.scale;
    }
    x.terms.insert(x.terms.end(), y.terms.begin(), y.terms.end());
    return x;
  }

  /// The coordinate of a read along the operand's axis `j`. The rule's own bound is taken off: what
  /// is beyond it counts as outside.
  [[nodiscard]] Affine coordinate(std::int32_t id, int j) const {
    const ExprGraph::Node& bound = graph_.node(id);
    if (bound.op == Opcode::min) id = bound.args[0];
    const ExprGraph::Node& node = graph_.node(id);
    if (node.op != Opcode::mod) return parse(id);
    Affine x = parse(node.args[0]);
    const bool whole_turn = x.axis >= 0 && x.scale < 0 && out_.shape[x.axis] == shape_[j] &&
                            value_of(node.args[1]) == static_cast<double>(shape_[j]);
    if (!whole_turn) return no_way();
    x.modulus = node.args[1];
    return x;
  }

  /// A number of the forward body in this one.
  std::int32_t copied(std::int32_t id) {
    const BodyPtr alone =
        make_body(graph_, forward_.body->inputs, forward_.body->params, std::array{id});
    return composer_.copy(*alone, std::span(inputs_).first(in_.size()), same_params(*alone))[0];
  }

  void require(std::int32_t condition) {
    inside_ = inside_ < 0 ? condition : make(Opcode::logical_and, inside_, condition);
  }

  /// What read `r` adds to the gradient: its slope at the one place that reads this element.
  std::int32_t contribution(const Body& slopes, std::size_t r) {
    inside_ = -1;
    std::vector<Affine> coordinates;
    for (std::int32_t index = graph_.node(reads_[r]).args[1]; index >= 0;
         index = graph_.node(index).args[1])
      coordinates.push_back(
          coordinate(graph_.node(index).args[0], static_cast<int>(coordinates.size())));
    if (!solvable_) return -1;
    const std::vector<std::int32_t> place = place_of(coordinates);
    if (!solvable_) return -1;
    const std::int32_t found = slope(slopes, r, place);
    if (inside_ < 0) return found;
    const std::int32_t zero = composer_.intern({.op = Opcode::constant});
    return make(Opcode::select, inside_, found, zero);
  }

  /// The slope of read `r` times the incoming gradient, at a place of the result; without one at
  /// that which is computed.
  std::int32_t slope(const Body& slopes, std::size_t r, const std::vector<std::int32_t>& place) {
    std::vector<std::int32_t> wanted = reads_;
    wanted.push_back(forward_.body->roots[0]);
    const BodyPtr all = make_body(graph_, forward_.body->inputs, forward_.body->params, wanted);
    auto values = composer_.copy(*all, std::span(inputs_).first(in_.size()), same_params(*all),
                                 {.coordinates = place, .element = {}});
    std::vector<std::int32_t> own_place = place;
    for (int axis = static_cast<int>(place.size()); axis < out_.shape.rank(); ++axis)
      own_place.push_back(own(axis));
    values.push_back(gradient_at(own_place));
    return composer_.copy(slopes, values, same_params(slopes),
                          {.coordinates = place, .element = {}})[r];
  }

  std::int32_t gradient_at(const std::vector<std::int32_t>& place) {
    std::int32_t index = -1;
    for (std::size_t axis = place.size(); axis-- > 0;)
      index = make(Opcode::index, place[axis], index);
    return make(Opcode::element, inputs_.back(), index);
  }

  /// The coordinates of the result that reads the element, bounded; `inside_` says whether there is
  /// one.
  std::vector<std::int32_t> place_of(const std::vector<Affine>& coordinates) {
    std::vector<std::int32_t> place(out_.shape.size(), -1);
    std::vector<int> unused;
    for (int axis = 0; axis < out_.shape.rank(); ++axis) {
      const auto uses = std::ranges::count(coordinates, axis, &Affine::axis);
      if (uses > 1) solvable_ = false;
      if (uses == 0 && out_.shape[axis] != 1) unused.push_back(axis);
      if (uses == 0) place[static_cast<std::size_t>(axis)] = whole(0);
    }
    if (first_ && unused.size() + shape_.size() <= std::size_t{max_rank}) summed_ = unused;
    if (unused != summed_) solvable_ = false;
    if (!solvable_) return place;
    first_ = false;
    for (std::size_t i = 0; i < summed_.size(); ++i)
      place[at(summed_[i])] = own(static_cast<int>(i));
    for (int j = 0; j < shape_.rank(); ++j) {
      const Affine& c = coordinates[static_cast<std::size_t>(j)];
      const std::int32_t there = solved(c, own(static_cast<int>(summed_.size()) + j), j);
      if (c.axis >= 0) place[at(c.axis)] = there;
    }
    return place;
  }
  std::int32_t own(int axis) {
    return composer_.intern({.op = Opcode::coordinate, .args = {axis, -1, -1}});
  }

  /// The result's coordinate for which the read's is `p`.
  std::int32_t solved(const Affine& c, std::int32_t p, int j) {
    for (const auto& [id, sign] : c.terms)
      p = make(sign > 0 ? Opcode::sub : Opcode::add, p, copied(id));
    if (c.axis < 0) {
      require(make(Opcode::equal, p, whole(0)));
      return -1;
    }
    if (c.sign < 0) p = make(Opcode::neg, p);
    if (c.modulus >= 0) return make(Opcode::mod, p, copied(c.modulus));
    const bool same = c.terms.empty() && c.sign > 0 && c.scale < 0;
    if (same && out_.shape[c.axis] == shape_[j]) return p;
    if (c.scale >= 0) {
      const std::int32_t scale = copied(c.scale);
      require(make(Opcode::equal, make(Opcode::mod, p, scale), whole(0)));
      p = make(Opcode::floor_div, p, scale);
    }
    const std::int32_t size = number(out_.shape[c.axis]);
    require(make(Opcode::less_equal, whole(0), p));
    require(make(Opcode::less, p, size));
    const std::int32_t last = make(Opcode::sub, size, whole(1));
    return make(Opcode::max, make(Opcode::min, p, last), whole(0));
  }

  std::string_view op_;
  std::string_view name_;
  const ElementBody& forward_;
  const ExprGraph& graph_;
  int params_;
  std::span<const TensorSpec> in_;
  const TensorSpec& out_;
  std::int32_t operand_;
  Shape shape_;
  std::vector<double> numbers_;
  std::vector<std::int32_t> reads_;
  Composer composer_;
  std::vector<std::int32_t> inputs_;
  std::vector<int> summed_;  ///< axes of the result
  bool first_ = true;
  mutable bool solvable_ = true;  ///< every read so far has a way back
  std::int32_t inside_ = -1;
};

}  // namespace

ElementGradient element_gradient(std::string_view op, std::string_view name,
                                 const ElementBody& forward, int params,
                                 std::span<const TensorSpec> in, const TensorSpec& out,
                                 std::size_t operand) {
  return Derivation(op, name, forward, params, in, out, operand).run();
}

}  // namespace kiln::detail
