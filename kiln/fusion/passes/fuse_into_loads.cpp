#include <algorithm>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/fusion/passes/rewrite.hpp"

namespace kiln::fusion {
namespace {

// A cheap body may be computed for every element that it is broadcast to, an expensive one only for
// few.
constexpr int cheap_nodes = 16;
constexpr std::int64_t few_elements = 1 << 16;
constexpr std::size_t most_readers = 4;
// What a kernel loads again and again lies in a cache, and such a kernel has arithmetic to do
// meanwhile. So bytes that it loads more than it needs to weigh less than those of memory: so many
// as one. That holds for few of them. Beyond that the loads cost a product more time than storing:
// on an H200 a mask in the loads of a product of 1024 takes 100 us, stored before it 79 us; of 512
// it is 30 us against 33.
constexpr double cached_bytes = 96;
constexpr double most_cached_bytes = 1 << 24;

class IntoLoads : Pass {
 public:
  using Pass::Pass;

  Graph run() && {
    for (const Node& producer : graph.nodes) {
      if (!std::holds_alternative<Elementwise>(producer.work)) continue;
      const std::vector<std::int32_t> values = producer.out;
      for (const std::int32_t value : values) move_into_readers(value);
    }
    return std::move(*this).settled();
  }

 private:
  /// Lets every reader of `value` compute it, so that it is never stored.
  void move_into_readers(std::int32_t value) {
    const std::int32_t producer = links.producer(value);
    const std::vector<std::int32_t> readers = links.consumers(value);
    if (graph.values[static_cast<std::size_t>(value)].held || readers.empty() ||
        readers.size() > most_readers || !worth_it(node(producer), value, readers.size()))
      return;
    std::vector<Node> rewritten;
    for (const std::int32_t reader : readers) {
      auto with_it = rebuilt(reader, producer, value, readers.size());
      if (!with_it) return;
      rewritten.push_back(std::move(*with_it));
    }
    for (std::size_t i = 0; i < readers.size(); ++i) {
      links.unlink(graph, readers[i]);
      node(readers[i]) = std::move(rewritten[i]);
      links.link(graph, readers[i]);
    }
    forget(producer, value);
  }

  /// Whether it moves no more bytes if each reader reads the producer's inputs than if `value` is
  /// stored.
  bool worth_it(const Node& producer, std::int32_t value, std::size_t readers) const {
    const auto& body = *std::get<Elementwise>(producer.work).body.body;
    const auto root =
        static_cast<std::size_t>(std::ranges::find(producer.out, value) - producer.out.begin());
    double in = 0;
    for (std::size_t i = 0; i < producer.in.size(); ++i) {
      const Use& use = producer.in[i];
      if (body.uses(root, static_cast<int>(i)))
        in += static_cast<double>(bytes_reached(graph, use));
    }
    const TensorSpec& spec = graph.spec(value);
    const double out = static_cast<double>(dispatch::bytes_of(spec));
    const auto n = static_cast<double>(readers);
    const double saved = producer.out.size() == 1 ? in : 0;
    return n * in <= (n + 1) * out + saved;
  }

  /// The reader changed so that it computes `value` itself. Nothing if it cannot.
  std::optional<Node> rebuilt(std::int32_t reader, std::int32_t producer, std::int32_t value,
                              std::size_t readers) {
    Node out = node(reader);
    out.records = joined(node(producer).records, out.records);
    if (auto* work = std::get_if<Elementwise>(&out.work)) {
      auto built =
          computing(out.in, producer, value, work->body, dtypes_of(graph, out.out), work->shape);
      if (!built) return std::nullopt;
      work->body = std::move(built->body);
      out.in = std::move(built->in);
      return within(limits, out, work->body) ? std::optional(std::move(out)) : std::nullopt;
    }
    // Loads of kernels know no places, and those of reductions no positions.
    const Body& made = *std::get<Elementwise>(node(producer).work).body.body;
    const bool kernel = std::holds_alternative<Call>(out.work);
    if (made.position || (kernel && (made.knows_place() || made.has_index()))) return std::nullopt;
    if (kernel) return into_kernel(std::move(out), node(producer), value, readers);
    auto* work = std::get_if<Reduce>(&out.work);
    const std::size_t first =
        work->epilogue.body.body != nullptr ? work->epilogue.first : out.in.size();
    const std::vector<Use> after(out.in.begin() + static_cast<std::ptrdiff_t>(first), out.in.end());
    if (std::ranges::find(after, value, &Use::value) != after.end()) return std::nullopt;
    out.in.resize(first);
    auto built =
        computing(out.in, producer, value, work->before, std::vector{work->dtype}, work->shape);
    if (!built) return std::nullopt;
    work->before = std::move(built->body);
    out.in = std::move(built->in);
    work->epilogue.first = out.in.size();
    out.in.insert(out.in.end(), after.begin(), after.end());
    return within(limits, out, work->before) ? std::optional(std::move(out)) : std::nullopt;
  }

  /// The kernel's node with `value` computed by the loads of the operands that read it. Nothing if
  /// one of them takes no producer, or if something else of the node reads it.
  std::optional<Node> into_kernel(Node out, const Node& producer, std::int32_t value,
                                  std::size_t readers) {
    auto& call = std::get<Call>(out.work);
    if (call.takes.loads.empty()) return std::nullopt;
    const auto plain = call.takes.loads.size() - call.producers.size();
    const std::vector<Use> before = std::move(out.in);
    const auto reads = [&](std::size_t i) { return before[i].value == value; };
    for (std::size_t i = plain; i < before.size(); ++i) {
      if (reads(i)) return std::nullopt;
    }
    out.in.clear();
    std::vector<NodeProducer> producers;
    std::vector<Use> computed;  // what the producers read
    auto known = call.producers.begin();
    for (std::size_t operand = 0, next = 0; operand < call.takes.loads.size(); ++operand) {
      NodeProducer made{.operand = operand, .body = {}, .first = computed.size()};
      if (known != call.producers.end() && known->operand == operand) {
        const auto from = before.begin() + static_cast<std::ptrdiff_t>(known->first);
        computed.insert(computed.end(), from, from + static_cast<std::ptrdiff_t>(known->count));
        made.body = (known++)->body;
      } else if (const std::size_t at = next++; !reads(at)) {
        out.in.push_back(before[at]);
        continue;
      } else {
        auto built = loaded(call.takes.loads[operand], producer, value, before[at].layout, readers);
        if (!built) return std::nullopt;
        made.body = std::move(built->body);
        computed.insert(computed.end(), built->in.begin(), built->in.end());
      }
      made.count = computed.size() - made.first;
      producers.push_back(std::move(made));
    }
    for (NodeProducer& p : producers) p.first += out.in.size();
    call.producers = std::move(producers);
    out.in.insert(out.in.end(), computed.begin(), computed.end());
    if (call.epilogue.body.body != nullptr) {
      const auto from = before.begin() + static_cast<std::ptrdiff_t>(call.epilogue.first);
      call.epilogue.first = out.in.size();
      out.in.insert(out.in.end(), from, before.end());
    }
    const std::size_t bound = out.in.size() + out.out.size();
    if (call.takes.scratch + static_cast<int>(bound) > limits.buffers) return std::nullopt;
    return out;
  }

  /// What a load computes in place of `value`, which the kernel sees through `view`.
  std::optional<BodyBuilder::Built> loaded(const dispatch::Loads& loads, const Node& producer,
                                           std::int32_t value, const Layout& view,
                                           std::size_t readers) {
    if (!loads.takes()) return std::nullopt;
    BodyBuilder builder(graph);
    const auto made = inside(builder, producer, value, view);
    if (!made) return std::nullopt;
    BodyBuilder::Built built = builder.finish({&*made, 1});
    if (!within(limits, built.body)) return std::nullopt;
    const bool cheap = loads.times == 1 || (builder.size() <= cheap_nodes &&
                                            cheap_again(loads, built.in, value, view, readers));
    return cheap ? std::optional(std::move(built)) : std::nullopt;
  }

  /// Whether a kernel may find and read `in` anew each time that it loads an element of `value`.
  /// Loads may then move more bytes, and storing moves the inputs and the value once.
  bool cheap_again(const dispatch::Loads& loads, const std::vector<Use>& in, std::int32_t value,
                   const Layout& view, std::size_t readers) const {
    double bytes = 0;
    for (const Use& use : in) {
      const std::uint64_t reached = bytes_reached(graph, use);
      const bool near = loads.by_coordinates ? lies_along(view, use.layout)
                                             : use.layout.is_dense() || reached <= sizeof(float);
      if (!near) return false;
      bytes += static_cast<double>(reached);
    }
    const auto own = static_cast<double>(dispatch::bytes_of({view.shape, graph.spec(value).dtype}));
    const double more = std::max(bytes - own, 0.0) * static_cast<double>(loads.times) *
                        static_cast<double>(readers);
    return more <= std::min(cached_bytes * (bytes + own), most_cached_bytes);
  }

  /// Whether neighbours of `view` are neighbours in `layout`, or one element.
  static bool lies_along(const Layout& view, const Layout& layout) {
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      if (view.shape[axis] != 1 && view.stride(axis) == 1 && layout.stride(axis) > 1) return false;
    }
    return true;
  }

  /// `body` over `in` and `shape`, in which reads of `value` are replaced by what makes it. A null
  /// body stands for its one input.
  std::optional<BodyBuilder::Built> computing(const std::vector<Use>& in, std::int32_t producer,
                                              std::int32_t value, const BoundBody& body,
                                              const std::vector<DType>& out, const Shape& shape) {
    BodyBuilder builder(graph);
    std::vector<std::int32_t> arguments;
    for (const Use& use : in) {
      if (use.value != value || use.indexed) {
        arguments.push_back(builder.input(use));
        continue;
      }
      const auto made = inside(builder, node(producer), value, use.layout);
      if (!made) return std::nullopt;
      arguments.push_back(*made);
    }
    if (body.body == nullptr) return builder.finish(arguments);
    bool fits = true;
    std::int64_t computed = 0;
    const auto element = [&](int slot, std::int32_t index) -> std::int32_t {
      const Use& use = in[at(slot)];
      if (use.value != value || !fits) return -1;
      computed += shape.elements();
      const auto made = affordable(node(producer), computed)
                            ? at_index(builder, node(producer), value, use.layout, index, shape)
                            : std::nullopt;
      fits = made.has_value();
      return made.value_or(-1);
    };
    const auto roots = builder.add(body, arguments, out, {.coordinates = {}, .element = element});
    if (!fits) return std::nullopt;
    return builder.finish(roots);
  }

  /// Whether the producer's elements may be computed so often.
  static bool affordable(const Node& producer, std::int64_t times) {
    const auto& work = std::get<Elementwise>(producer.work);
    const int size = static_cast<int>(work.body.body->graph->nodes().size());
    return times <= work.shape.elements() || size <= cheap_nodes || times <= few_elements;
  }

  /// The element of `value`, seen through `view`, at an index. It is computed there, from elements
  /// of the producer's inputs that are found in the same way.
  std::optional<std::int32_t> at_index(BodyBuilder& builder, const Node& producer,
                                       std::int32_t value, const Layout& view, std::int32_t index,
                                       const Shape& shape) {
    const auto& work = std::get<Elementwise>(producer.work);
    const Body& body = *work.body.body;
    std::vector<std::int32_t> coordinates;
    if (body.knows_place()) {
      const auto there = builder.coordinates_through(work.shape, view, builder.coordinates(index));
      if (!there || body.position) return std::nullopt;
      coordinates = *there;
    }
    std::vector<std::int32_t> arguments;
    for (const Use& use : producer.in) {
      const auto seen = use.indexed ? use.layout : seen_through(use.layout, view);
      if (!seen) return std::nullopt;
      arguments.push_back(use.indexed ? builder.input(use)
                                      : builder.element({use.value, *seen, true}, index, shape));
    }
    const auto results = builder.add(work.body, arguments, dtypes_of(graph, producer.out),
                                     {.coordinates = coordinates, .element = {}});
    return results[at(
        static_cast<std::int32_t>(std::ranges::find(producer.out, value) - producer.out.begin()))];
  }

  /// `value` seen through `view`, computed in the builder's body.
  std::optional<std::int32_t> inside(BodyBuilder& builder, const Node& producer, std::int32_t value,
                                     const Layout& view) {
    const auto& work = std::get<Elementwise>(producer.work);
    if (!affordable(producer, view.shape.elements())) return std::nullopt;
    std::vector<std::int32_t> coordinates;
    if (work.body.body->knows_place() && view != Layout::dense(work.shape)) {
      const auto there =
          builder.coordinates_through(work.shape, view, builder.own_coordinates(view.shape));
      if (!there || work.body.body->position) return std::nullopt;
      coordinates = *there;
    }
    std::vector<std::int32_t> arguments;
    for (const Use& use : producer.in) {
      const auto seen = use.indexed ? use.layout : seen_through(use.layout, view);
      if (!seen) return std::nullopt;
      arguments.push_back(builder.input({use.value, *seen, use.indexed}));
    }
    const auto results = builder.add(work.body, arguments, dtypes_of(graph, producer.out),
                                     {.coordinates = coordinates, .element = {}});
    return results[static_cast<std::size_t>(std::ranges::find(producer.out, value) -
                                            producer.out.begin())];
  }

  /// Removes `value` from the results of the producer.
  void forget(std::int32_t producer, std::int32_t value) {
    links.unlink(graph, producer);
    Node& n = node(producer);
    BodyBuilder builder(graph);
    std::vector<std::int32_t> in;
    for (const Use& use : n.in) in.push_back(builder.input(use));
    const auto results =
        builder.add(std::get<Elementwise>(n.work).body, in, dtypes_of(graph, n.out));
    std::vector<std::int32_t> roots;
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < n.out.size(); ++i) {
      if (n.out[i] == value) continue;
      out.push_back(n.out[i]);
      roots.push_back(results[i]);
    }
    n.out = std::move(out);
    n.in.clear();
    if (n.out.empty()) return;
    BodyBuilder::Built built = builder.finish(roots);
    std::get<Elementwise>(n.work).body = std::move(built.body);
    n.in = std::move(built.in);
    links.link(graph, producer);
  }
};

}  // namespace

Graph fuse_into_loads(Graph graph, const FusionLimits& limits) {
  return IntoLoads(std::move(graph), limits).run();
}

}  // namespace kiln::fusion
