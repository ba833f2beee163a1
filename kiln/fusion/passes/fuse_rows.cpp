#include <algorithm>
#include <array>

#include "kiln/fusion/passes/rewrite.hpp"

namespace kiln::fusion {
namespace {

/// The axes of `shape` that are not in `axes`.
Shape kept_shape(const Shape& shape, const Axes& axes) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!axes[static_cast<std::size_t>(axis)]) out.push_back(shape[axis]);
  }
  return out;
}

/// `layout`, which has one element a row, over the whole shape.
std::optional<Layout> over_rows(const Layout& layout, const Shape& shape, const Axes& axes) {
  const auto kept = layout.reshape(kept_shape(shape, axes));
  if (!kept) return std::nullopt;
  Layout out{.shape = shape, .offset = kept->offset};
  int from = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!axes[static_cast<std::size_t>(axis)])
      out.strides[static_cast<std::size_t>(axis)] = kept->stride(from++);
  }
  return out;
}

/// Whether both find the same elements.
bool same_places(const Layout& a, const Layout& b) {
  if (a.shape != b.shape || a.offset != b.offset) return false;
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    if (a.shape[axis] != 1 && a.stride(axis) != b.stride(axis)) return false;
  }
  return true;
}

/// Whether the body reads elements at their own places alone. It may know its coordinates.
bool reads_in_place(const BodyPtr& body) {
  return body == nullptr || (!body->has_index() && !body->position);
}

/// Appends nodes that work on the same rows to one body.
class RowsBuilder {
 public:
  RowsBuilder(const Graph& graph, const Shape& shape, const Axes& axes)
      : graph_(graph), shape_(shape), axes_(axes), body_(graph) {}

  /// Appends a node that works on these rows. False if it reads something in another order.
  bool add(const Node& node) {
    if (const auto* work = std::get_if<Elementwise>(&node.work)) return add(node, *work);
    if (const auto* work = std::get_if<Reduce>(&node.work)) return add(node, *work);
    return add(node, std::get<Rows>(node.work));
  }

  /// The node with these results.
  Node finish(std::vector<std::int32_t> records, std::vector<std::int32_t> out) const {
    std::vector<std::int32_t> roots = elements_;
    for (const std::int32_t value : out) roots.push_back(*made(value));
    BodyBuilder::Built built = body_.finish(roots);
    return {std::move(records), Rows{std::move(built.body), shape_, axes_, folds_},
            std::move(built.in), std::move(out)};
  }

 private:
  struct Made {
    std::int32_t value;
    std::int32_t node;
  };

  [[nodiscard]] std::optional<std::int32_t> made(std::int32_t value) const {
    const auto found = std::ranges::find(made_, value, &Made::value);
    return found == made_.end() ? std::nullopt : std::optional(found->node);
  }

  [[nodiscard]] bool is_row(std::int32_t value) const {
    return graph_.spec(value).shape.elements() != shape_.elements();
  }

  /// What `use`, a layout over the whole shape, reads. Nothing if a value that was made here is
  /// read in another order.
  std::optional<std::int32_t> read(const Use& use) {
    const auto node = made(use.value);
    if (!node) return body_.input(use);
    const Layout dense = Layout::dense(graph_.spec(use.value).shape);
    const auto own = is_row(use.value) ? over_rows(dense, shape_, axes_) : dense.reshape(shape_);
    if (!own || !same_places(*own, use.layout)) return std::nullopt;
    return node;
  }

  void make(std::span<const std::int32_t> values, std::span<const std::int32_t> nodes) {
    for (std::size_t i = 0; i < values.size(); ++i) made_.push_back({values[i], nodes[i]});
  }

  /// The value of the next fold; what it combines goes to elements_.
  std::int32_t value_of(const dispatch::Fold& fold) {
    folds_.push_back(fold);
    return body_.fold_value(fold.value);
  }

  bool add(const Node& node, const Elementwise& work) {
    std::vector<std::int32_t> in;
    for (const Use& use : node.in) {
      const auto read_node = read({use.value, use.layout.broadcast_to(shape_)});
      if (!read_node) return false;
      in.push_back(*read_node);
    }
    make(node.out, body_.add(work.body, in, dtypes_of(graph_, node.out)));
    return true;
  }

  bool add(const Node& node, const Reduce& work) {
    const bool stores = work.epilogue.body.body != nullptr;
    const std::size_t first = stores ? work.epilogue.first : node.in.size();
    std::vector<std::int32_t> in;
    for (std::size_t i = 0; i < first; ++i) {
      const auto read_node = read({node.in[i].value, node.in[i].layout.broadcast_to(shape_)});
      if (!read_node) return false;
      in.push_back(*read_node);
    }
    elements_.push_back(
        work.before.body == nullptr ? in[0] : body_.add(work.before, in, {&work.dtype, 1})[0]);
    std::vector<std::int32_t> results{
        value_of({work.reduction.combine, work.reduction.scale, work.dtype, work.result.dtype})};
    if (stores) {
      for (std::size_t i = first; i < node.in.size(); ++i) {
        const Layout own = node.in[i].layout.broadcast_to(work.result.shape);
        const auto wide = over_rows(own, shape_, axes_);
        const auto read_node =
            wide ? read({node.in[i].value, *wide}) : std::optional<std::int32_t>();
        if (!read_node) return false;
        results.push_back(*read_node);
      }
      results = body_.add(work.epilogue.body, results, dtypes_of(graph_, node.out));
    }
    make(node.out, results);
    return true;
  }

  bool add(const Node& node, const Rows& work) {
    std::vector<std::int32_t> in;
    for (const Use& use : node.in) {
      const auto read_node = read(use);
      if (!read_node) return false;
      in.push_back(*read_node);
    }
    std::vector<DType> out;
    for (const dispatch::Fold& fold : work.folds) {
      in.push_back(value_of(fold));
      out.push_back(fold.element);
    }
    for (const DType dtype : dtypes_of(graph_, node.out)) out.push_back(dtype);
    const auto results = body_.add(work.body, in, out);
    const auto values = results.begin() + std::ssize(work.folds);
    elements_.insert(elements_.end(), results.begin(), values);
    make(node.out, {values, results.end()});
    return true;
  }

  const Graph& graph_;
  Shape shape_;
  Axes axes_;
  BodyBuilder body_;
  std::vector<dispatch::Fold> folds_;
  std::vector<std::int32_t> elements_;  ///< what each fold combines
  std::vector<Made> made_;
};

/// Rows that a node works on.
struct Space {
  Shape shape;
  Axes axes;
};

class IntoRows : Pass {
 public:
  using Pass::Pass;

  Graph run() && {
    if (limits.runtime == nullptr) return std::move(graph);
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        changed = join_reader(static_cast<std::int32_t>(n)) || changed;
    }
    return std::move(*this).settled();
  }

 private:
  /// The rows of a reduction that may be a part of a launch of several.
  std::optional<Space> space_of(std::int32_t n) {
    if (const auto* rows = std::get_if<Rows>(&node(n).work)) return Space{rows->shape, rows->axes};
    const auto* reduce = std::get_if<Reduce>(&node(n).work);
    if (reduce == nullptr || node(n).out.empty()) return std::nullopt;
    const Combine combine = reduce->reduction.combine;
    const bool folds = combine == Combine::sum || combine == Combine::max ||
                       combine == Combine::min || combine == Combine::norm;
    const BodyPtr& after = reduce->epilogue.body.body;
    const bool knows_rows = after != nullptr && after->knows_place();
    if (!folds || knows_rows || !reads_in_place(reduce->before.body) || !reads_in_place(after))
      return std::nullopt;
    return Space{reduce->shape, reduce->reduction.axes};
  }

  bool works_on(std::int32_t n, const Space& space) {
    if (const auto* work = std::get_if<Elementwise>(&node(n).work))
      return work->shape == space.shape && reads_in_place(work->body.body) && !node(n).out.empty();
    const auto own = space_of(n);
    return own && own->shape == space.shape && own->axes == space.axes;
  }

  /// Bytes of the elements that both read, row by row.
  double shared_bytes(const Node& a, const Node& b) const {
    double bytes = 0;
    for (const Use& use : a.in) {
      const auto same = [&](const Use& other) { return other.value == use.value; };
      if (std::ranges::any_of(b.in, same)) bytes += static_cast<double>(bytes_reached(graph, use));
    }
    for (const std::int32_t value : a.out) {
      const auto reads = [&](const Use& use) { return use.value == value; };
      if (std::ranges::any_of(b.in, reads))
        bytes += static_cast<double>(dispatch::bytes_of(graph.spec(value)));
    }
    return bytes;
  }

  /// Joins a reduction with a node that reads its results, if both read the same rows.
  bool join_reader(std::int32_t producer) {
    const auto space = space_of(producer);
    if (!space || space->shape.elements() == 0) return false;
    const Shape kept = kept_shape(space->shape, space->axes);
    if (kept.elements() == space->shape.elements()) return false;  // rows of one element
    const double a_row = static_cast<double>(kept.elements()) * sizeof(float);
    for (const std::int32_t value : node(producer).out) {
      for (const std::int32_t reader : links.consumers(value)) {
        if (reader == producer || !works_on(reader, *space)) continue;
        if (shared_bytes(node(producer), node(reader)) <= 2 * a_row) continue;
        if (!links.detour(graph, producer, reader) && merge(producer, reader, *space)) return true;
      }
    }
    return false;
  }

  bool merge(std::int32_t producer, std::int32_t reader, const Space& space) {
    RowsBuilder builder(graph, space.shape, space.axes);
    if (!builder.add(node(producer)) || !builder.add(node(reader))) return false;
    const std::array both{producer, reader};
    std::vector<std::int32_t> out;
    for (const std::int32_t n : both) {
      for (const std::int32_t value : node(n).out) {
        if (links.needed_besides(graph, value, both)) out.push_back(value);
      }
    }
    Node merged =
        builder.finish(joined(node(producer).records, node(reader).records), std::move(out));
    const auto& rows = std::get<Rows>(merged.work);
    if (!within(limits, merged, rows.body)) return false;
    std::vector<RawTensor> operands;
    for (const Use& use : merged.in)
      operands.push_back({nullptr, nullptr, graph.spec(use.value).dtype, use.layout});
    if (!dispatch::takes_rows(*limits.runtime, rows_call(graph, merged, rows, "rows", {}),
                              operands))
      return false;
    links.unlink(graph, producer);
    links.unlink(graph, reader);
    node(producer) = {node(producer).records, Elementwise{}, {}, {}};
    node(reader) = std::move(merged);
    links.link(graph, reader);
    links.joined(producer, reader, reader);
    return true;
  }
};

}  // namespace

dispatch::RowsCall rows_call(const Graph& graph, const Node& node, const Rows& work,
                             std::string_view op, std::vector<double> params) {
  dispatch::RowsCall call{.op = op,
                          .shape = work.shape,
                          .axes = work.axes,
                          .body = work.body.body,
                          .params = std::move(params),
                          .folds = work.folds,
                          .out = {}};
  for (const std::int32_t value : node.out) call.out.push_back(graph.spec(value));
  return call;
}

Graph fuse_rows(Graph graph, const FusionLimits& limits) {
  return IntoRows(std::move(graph), limits).run();
}

}  // namespace kiln::fusion
