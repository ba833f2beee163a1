#include "kiln/fusion/passes/rewrite.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <iterator>
#include <queue>
#include <ranges>

#include "kiln/scalar/infer.hpp"

namespace kiln::fusion {
namespace {

/// Inputs of a body in the making that stand for the values of folds, behind those of all uses.
constexpr int first_fold = 1 << 10;
constexpr std::int64_t gap = std::int64_t{1} << 40;  // between the places of two nodes

/// The coordinates of `offset` in a dense tensor.
std::array<std::int64_t, max_rank> coordinates(const Layout& dense, std::int64_t offset) {
  std::array<std::int64_t, max_rank> out{};
  for (int axis = 0; axis < dense.shape.rank(); ++axis) {
    if (dense.shape[axis] == 1) continue;
    out[at(axis)] = offset / dense.stride(axis);
    offset %= dense.stride(axis);
  }
  return out;
}

}  // namespace

std::optional<Walk> walk_of(const Shape& inner, const Layout& view) {
  if (inner.elements() == 0 || view.shape.elements() == 0) return std::nullopt;
  const Layout dense = Layout::dense(inner);
  Walk walk{.start = coordinates(dense, view.offset)};
  walk.axes.fill(-1);
  std::bitset<max_rank> taken;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    if (view.shape[axis] == 1 || view.stride(axis) == 0) continue;
    int from = 0;
    const auto fits = [&] {
      return inner[from] != 1 && !taken[at(from)] && dense.stride(from) == view.stride(axis) &&
             walk.start[at(from)] + view.shape[axis] <= inner[from];
    };
    while (from < inner.rank() && !fits()) ++from;
    if (from == inner.rank()) return std::nullopt;
    taken[at(from)] = true;
    walk.axes[at(axis)] = from;
  }
  return walk;
}

std::optional<Layout> seen_through(const Layout& inner, const Layout& view) {
  if (view == Layout::dense(inner.shape)) return inner;
  if (const auto walk = walk_of(inner.shape, view)) {
    Layout out{view.shape, {}, inner.offset};
    for (int axis = 0; axis < inner.shape.rank(); ++axis)
      out.offset += walk->start[at(axis)] * inner.stride(axis);
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      const int from = walk->axes[at(axis)];
      if (from >= 0) out.strides[at(axis)] = inner.stride(from);
    }
    return out;
  }
  const bool reshaped = view.is_dense() && view.offset == 0 && view.shape.elements() > 0 &&
                        view.shape.elements() == inner.shape.elements();
  return reshaped ? inner.reshape(view.shape) : std::nullopt;
}

bool reads_in_order(const Graph& graph, const Use& use) {
  return !use.indexed && use.layout.offset == 0 && use.layout.is_dense() &&
         use.layout.shape.elements() == graph.spec(use.value).shape.elements();
}

bool reads_in_order(const Graph& graph, const Node& reader, const Node& maker) {
  return std::ranges::all_of(reader.in, [&](const Use& use) {
    return std::ranges::find(maker.out, use.value) == maker.out.end() || reads_in_order(graph, use);
  });
}

Links::Links(const Graph& graph)
    : producers_(graph.values.size(), -1),
      consumers_(graph.values.size()),
      places_(graph.nodes.size()),
      seen_(graph.nodes.size()) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    link(graph, static_cast<std::int32_t>(n));
    by_place_.emplace_hint(by_place_.end(), static_cast<std::int64_t>(n),
                           static_cast<std::int32_t>(n));
  }
  spread();
}

void Links::link(const Graph& graph, std::int32_t node) {
  const Node& n = graph.nodes[at(node)];
  for (const std::int32_t v : n.out) producers_[at(v)] = node;
  for (const Use& use : n.in) {
    auto& readers = consumers_[at(use.value)];
    const auto place = std::ranges::lower_bound(readers, node);
    if (place == readers.end() || *place != node) readers.insert(place, node);
  }
}

void Links::unlink(const Graph& graph, std::int32_t node) {
  const Node& n = graph.nodes[at(node)];
  for (const std::int32_t v : n.out) producers_[at(v)] = -1;
  for (const Use& use : n.in) {
    auto& readers = consumers_[at(use.value)];
    const auto place = std::ranges::lower_bound(readers, node);
    if (place != readers.end() && *place == node) readers.erase(place);
  }
}

bool Links::detour(const Graph& graph, std::int32_t from, std::int32_t to) {
  constexpr int most = 256;  // readers to look at, so that planning stays linear in the graph
  int left = most;
  ++stamp_;
  between_.clear();
  std::size_t done = 0;
  for (std::int32_t node = from;; node = between_[done++]) {
    for (const std::int32_t value : graph.nodes[at(node)].out) {
      for (const std::int32_t reader : consumers(value)) {
        if (node == from && reader == to) continue;
        if (reader == to || left-- == 0) return true;
        if (places_[at(reader)] > places_[at(to)] || seen_[at(reader)] == stamp_) continue;
        seen_[at(reader)] = stamp_;
        between_.push_back(reader);
      }
    }
    if (done == between_.size()) return false;
  }
}

void Links::joined(std::int32_t from, std::int32_t to, std::int32_t kept) {
  // Both now stand at the place of `to`, after everything that they read. What depends on `from`
  // comes later.
  const std::int64_t place = places_[at(to)];
  by_place_.erase(places_[at(from)]);
  by_place_[place] = kept;
  places_[at(kept)] = place;
  if (between_.empty()) return;
  std::ranges::sort(between_, {}, [&](std::int32_t node) { return places_[at(node)]; });
  const auto count = static_cast<std::int64_t>(between_.size()) + 1;
  auto next = by_place_.upper_bound(place);
  if (next != by_place_.end() && next->first - place <= count) {
    spread();
    next = by_place_.upper_bound(places_[at(kept)]);
  }
  const std::int64_t begin = places_[at(kept)];
  const std::int64_t step = next == by_place_.end() ? gap : (next->first - begin) / count;
  for (std::size_t i = 0; i < between_.size(); ++i) {
    std::int64_t& own = places_[at(between_[i])];
    by_place_.erase(own);
    own = begin + (static_cast<std::int64_t>(i) + 1) * step;
    by_place_[own] = between_[i];
  }
}

/// Makes room between the places of all nodes.
void Links::spread() {
  std::map<std::int64_t, std::int32_t> wide;
  for (const auto& [place, node] : by_place_) {
    places_[at(node)] = static_cast<std::int64_t>(wide.size()) * gap;
    wide.emplace_hint(wide.end(), places_[at(node)], node);
  }
  by_place_ = std::move(wide);
}

bool Links::needed_besides(const Graph& graph, std::int32_t value,
                           std::span<const std::int32_t> readers) const {
  if (graph.values[at(value)].held) return true;
  return std::ranges::any_of(consumers(value), [&](std::int32_t reader) {
    return std::ranges::find(readers, reader) == readers.end();
  });
}

std::int32_t BodyBuilder::value(DType dtype) {
  has_value_ = true;
  const std::int32_t node = composer_.input(0);
  dtypes_.emplace_back(node, dtype);
  return node;
}

std::int32_t BodyBuilder::fold_value(DType dtype) {
  const std::int32_t node = composer_.input(first_fold + fold_values_++);
  dtypes_.emplace_back(node, dtype);
  return node;
}

std::int32_t BodyBuilder::input(const Use& use) {
  auto known = std::ranges::find(uses_, use);
  if (known == uses_.end()) known = uses_.insert(uses_.end(), use);
  const auto slot = static_cast<int>(known - uses_.begin()) + (has_value_ ? 1 : 0);
  const std::int32_t node = composer_.input(slot);
  dtypes_.emplace_back(node, graph_.spec(use.value).dtype);
  return node;
}

std::optional<std::int32_t> BodyBuilder::input(const Use& use, const Shape& shape) {
  if (use.indexed || use.layout.shape == shape) return input(use);
  const auto reshaped = use.layout.reshape(shape);
  if (!reshaped) return std::nullopt;
  return input(Use{use.value, *reshaped});
}

DType BodyBuilder::dtype_of(std::int32_t node) const {
  const auto found = std::ranges::find(dtypes_, node, &std::pair<std::int32_t, DType>::first);
  return found->second;
}

std::vector<std::int32_t> BodyBuilder::add(const BoundBody& body, std::span<const std::int32_t> in,
                                           std::span<const DType> out, const Places& places) {
  std::vector<DType> dtypes;
  for (const std::int32_t node : in) dtypes.push_back(dtype_of(node));
  std::vector<int> slots;
  for (const ParamUse& param : body.params) {
    auto known = std::ranges::find(params_, param);
    if (known == params_.end()) known = params_.insert(params_.end(), param);
    slots.push_back(static_cast<int>(known - params_.begin()));
  }
  auto results = composer_.add("fused", *body.body, in, dtypes, slots, out, places);
  for (std::size_t r = 0; r < results.size(); ++r) dtypes_.emplace_back(results[r], out[r]);
  return results;
}

BodyBuilder::Built BodyBuilder::finish(std::span<const std::int32_t> roots) const {
  const int lead = has_value_ ? 1 : 0;
  const int slots_made =
      fold_values_ == 0 ? static_cast<int>(uses_.size()) + lead : first_fold + fold_values_;
  const BodyPtr whole = composer_.finish(slots_made, static_cast<int>(params_.size()), roots);
  const auto slots_of = [&](Opcode op) {
    std::vector<char> read(at(slots_made) + params_.size());
    std::size_t count = 0;
    for (const ExprGraph::Node& node : whole->graph->nodes()) {
      if (node.op != op) continue;
      read[at(node.args[0])] = 1;
      ++count;
    }
    return std::pair(read, count);
  };
  const auto [inputs_read, input_count] = slots_of(Opcode::input);
  const auto [params_read, param_count] = slots_of(Opcode::param);
  const bool value_read = has_value_ && inputs_read[0] != 0;
  if (fold_values_ == 0 && param_count == params_.size() &&
      input_count == uses_.size() + (value_read ? 1 : 0))
    return {{whole, params_}, uses_};
  // Inputs and params that nothing reads are dropped.
  Built built;
  Composer compact;
  std::vector<std::int32_t> in;
  int inputs = lead;
  if (has_value_) in.push_back(compact.input(0));
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const bool used = inputs_read[i + at(lead)] != 0;
    in.push_back(used ? compact.input(inputs++) : -1);
    if (used) built.in.push_back(uses_[i]);
  }
  if (fold_values_ > 0) in.resize(at(first_fold), -1);
  for (int f = 0; f < fold_values_; ++f) in.push_back(compact.input(inputs++));
  std::vector<int> slots;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    slots.push_back(static_cast<int>(built.body.params.size()));
    if (params_read[i] != 0) built.body.params.push_back(params_[i]);
  }
  const auto results = compact.copy(*whole, in, slots);
  built.body.body = compact.finish(inputs, static_cast<int>(built.body.params.size()), results);
  return built;
}

std::optional<Joined> join(const Graph& graph, const Links& links, BodyBuilder& builder,
                           std::int32_t producer, std::span<const std::int32_t> made,
                           std::int32_t consumer, const Shape& shape) {
  const Node& p = graph.nodes[at(producer)];
  const Node& c = graph.nodes[at(consumer)];
  const auto& work = std::get<Elementwise>(c.work);
  if (work.body.body->knows_place() && work.shape != shape) return std::nullopt;
  std::vector<std::int32_t> in;
  for (const Use& use : c.in) {
    const auto from = std::ranges::find(p.out, use.value);
    const auto argument =
        from == p.out.end()
            ? builder.input(use, shape)
            : std::optional(made[at(static_cast<std::int32_t>(from - p.out.begin()))]);
    if (!argument) return std::nullopt;
    in.push_back(*argument);
  }
  const auto results = builder.add(work.body, in, dtypes_of(graph, c.out));
  Joined joined;
  const std::array inside{producer, consumer};
  const auto keep_needed = [&](const Node& from, std::span<const std::int32_t> nodes) {
    for (std::size_t i = 0; i < from.out.size(); ++i) {
      if (!links.needed_besides(graph, from.out[i], inside)) continue;
      joined.out.push_back(from.out[i]);
      joined.roots.push_back(nodes[i]);
    }
  };
  keep_needed(p, made);
  keep_needed(c, results);
  return joined;
}

std::vector<DType> dtypes_of(const Graph& graph, std::span<const std::int32_t> values) {
  std::vector<DType> out;
  for (const std::int32_t value : values) out.push_back(graph.spec(value).dtype);
  return out;
}

std::vector<std::int32_t> joined(const std::vector<std::int32_t>& a,
                                 const std::vector<std::int32_t>& b) {
  std::vector<std::int32_t> out;
  std::ranges::set_union(a, b, std::back_inserter(out));
  return out;
}

bool may_bind(const Graph& graph, const Links& links, const FusionLimits& limits,
              std::int32_t producer, std::int32_t consumer) {
  const Node& p = graph.nodes[at(producer)];
  const Node& c = graph.nodes[at(consumer)];
  const std::array both{producer, consumer};
  std::vector<std::int32_t> bound;
  for (const Node* node : {&p, &c}) {
    for (const Use& use : node->in) {
      if (std::ranges::find(p.out, use.value) == p.out.end()) bound.push_back(use.value);
    }
  }
  std::ranges::sort(bound);
  const auto repeated = std::ranges::unique(bound);
  auto count = static_cast<std::ptrdiff_t>(bound.size() - repeated.size());
  for (const Node* node : {&p, &c}) {
    count += std::ranges::count_if(
        node->out, [&](std::int32_t value) { return links.needed_besides(graph, value, both); });
  }
  return count <= limits.buffers;
}

bool within(const FusionLimits& limits, const BoundBody& body) {
  return static_cast<int>(body.body->graph->nodes().size()) <= limits.nodes &&
         static_cast<int>(body.params.size()) <= limits.params;
}

bool within(const FusionLimits& limits, const Node& node, const BoundBody& body) {
  return static_cast<int>(node.in.size() + node.out.size()) <= limits.buffers &&
         within(limits, body);
}

std::uint64_t bytes_reached(const Graph& graph, const Use& use) {
  std::uint64_t bytes = size_of(graph.spec(use.value).dtype);
  for (int axis = 0; axis < use.layout.shape.rank(); ++axis) {
    if (use.layout.stride(axis) != 0) bytes *= static_cast<std::uint64_t>(use.layout.shape[axis]);
  }
  return bytes;
}

bool Pass::left_to_loads(std::int32_t producer, std::int32_t consumer) const {
  const std::array both{producer, consumer};
  const Node& c = graph.nodes[at(consumer)];
  const auto stored_anyway = [&](const Use& use) {
    return links.producer(use.value) == producer && links.needed_besides(graph, use.value, both);
  };
  const auto loads = [&](std::int32_t reader) {
    const auto& work = graph.nodes[at(reader)].work;
    const auto* call = std::get_if<Call>(&work);
    return std::holds_alternative<Reduce>(work) ||
           (call != nullptr && std::ranges::any_of(call->takes.loads, &dispatch::Loads::takes));
  };
  const auto only_loaded = [&](std::int32_t value) {
    return !graph.values[at(value)].held && std::ranges::all_of(links.consumers(value), loads);
  };
  return std::ranges::any_of(c.in, stored_anyway) && std::ranges::all_of(c.out, only_loaded);
}

Graph settle_order(Graph graph) {
  const Links links(graph);
  std::vector<Node> ordered;
  std::vector<int> waits(graph.nodes.size());
  std::priority_queue<std::pair<std::int32_t, std::int32_t>,
                      std::vector<std::pair<std::int32_t, std::int32_t>>, std::greater<>>
      ready;
  const auto place = [&](std::size_t n) {
    return std::pair(graph.nodes[n].records.back(), static_cast<std::int32_t>(n));
  };
  // Each value that a node reads once, as consumers() has each reader once.
  const auto each_value = [](const Node& node, auto call) {
    for (auto use = node.in.begin(); use != node.in.end(); ++use) {
      if (std::ranges::find(node.in.begin(), use, use->value, &Use::value) == use) call(use->value);
    }
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    each_value(graph.nodes[n],
               [&](std::int32_t value) { waits[n] += links.producer(value) >= 0 ? 1 : 0; });
    if (waits[n] == 0 && !graph.nodes[n].out.empty()) ready.push(place(n));
  }
  while (!ready.empty()) {
    const std::int32_t n = ready.top().second;
    ready.pop();
    for (const std::int32_t value : graph.nodes[at(n)].out) {
      for (const std::int32_t reader : links.consumers(value)) {
        // A node whose results nobody reads any more, because bodies were fused, is left out.
        if (--waits[at(reader)] == 0 && !graph.nodes[at(reader)].out.empty())
          ready.push(place(at(reader)));
      }
    }
    ordered.push_back(std::move(graph.nodes[at(n)]));
  }
  // So are nodes that made only inputs of those.
  std::vector<char> needed;
  for (const ValueInfo& value : graph.values) needed.push_back(value.held ? 1 : 0);
  for (Node& node : std::views::reverse(ordered)) {
    const auto is_needed = [&](std::int32_t value) { return needed[at(value)] != 0; };
    if (std::ranges::none_of(node.out, is_needed)) node.out.clear();
    if (node.out.empty()) continue;
    for (const Use& use : node.in) needed[at(use.value)] = 1;
  }
  std::erase_if(ordered, [](const Node& node) { return node.out.empty(); });
  graph.nodes = std::move(ordered);
  return graph;
}

}  // namespace kiln::fusion
