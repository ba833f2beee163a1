// What the host pays when a queue runs: numbering its operations and spelling their form, which
// every run does, and planning, which the first run of a form does. Nothing is computed.
#include <benchmark/benchmark.h>

#include <array>
#include <random>
#include <vector>

#include "benchmarks/measure.hpp"
#include "kiln/fusion/batch.hpp"

namespace {

using namespace bench;
using namespace kiln;

/// How the operations of a queue hang together. Each reads the one before it, and:
enum class Links : std::uint8_t {
  held,    ///< any earlier one; somebody holds every result
  near,    ///< one of the last eight; somebody holds every result
  dropped  ///< one of the last eight; only the last result is held
};

BodyPtr product() {
  ExprGraph graph;
  return make_body(graph, 2, 0, std::array{graph.place(graph.input(0) * graph.input(1))});
}
BodyPtr scaled() {
  static const Param factor;
  ExprGraph graph({&factor});
  return make_body(graph, 1, 1, std::array{graph.place(graph.input(0) * factor)});
}

/// Queued operations: products, one in four a row sum that is broadcast again, and one in four
/// times a run-time number.
class Queue {
 public:
  Queue(Links links, std::int64_t operations) : links_(links) {
    add(ElementwiseCall{scaled(), {1}}, {given()}, square);
    while (std::ssize(batch_.ops) < operations) step();
    if (links == Links::dropped) {
      for (QueuedOp& op : batch_.ops) op.out[0]->held = false;
      batch_.ops.back().out[0]->held = true;
    }
  }

  Batch& batch() { return batch_; }

 private:
  static inline const Shape square{64, 64};

  static StoragePtr given() {
    auto storage = std::make_shared<Storage>();
    storage->shape = square;
    return storage;
  }

  void add(decltype(OpRecord::call) call, std::vector<StoragePtr> in, const Shape& shape) {
    QueuedOp op{{"op", std::move(call)}, {}, {}};
    for (StoragePtr& x : in) {
      const Layout layout = Layout::dense(x->shape);
      op.in.push_back({std::move(x), layout});
    }
    op.out = {given()};
    op.out[0]->shape = shape;
    op.out[0]->held = true;
    batch_.ops.push_back(std::move(op));
  }

  [[nodiscard]] StoragePtr last() const { return batch_.ops.back().out[0]; }
  StoragePtr other() {
    const std::size_t count = batch_.ops.size();
    const std::size_t among = links_ == Links::held ? count : std::min<std::size_t>(count, 8);
    return batch_.ops[count - 1 - random_() % among].out[0];
  }

  void step() {
    static const BodyPtr times = product();
    switch (random_() % 4) {
      case 0: {
        Reduction sum{.combine = Combine::sum};
        sum.axes[1] = last()->shape == square;
        return add(sum, {last()}, {64, 1});
      }
      case 1:
        return add(ElementwiseCall{scaled(), {0.5}}, {last()}, last()->shape);
      default: {
        StoragePtr x = last();
        StoragePtr y = other();
        const Shape shape = x->shape == square ? square : y->shape;
        return add(ElementwiseCall{times, {}}, {std::move(x), std::move(y)}, shape);
      }
    }
  }

  Links links_;
  Batch batch_;
  std::minstd_rand random_{1};
};

void report(benchmark::State& state) {
  state.counters["per operation"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(state.range(0)),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void number(benchmark::State& state, Links links) {
  Batch batch = std::move(Queue(links, state.range(0)).batch());
  for (auto _ : state) {
    ++batch.drain;
    batch.values.clear();
    batch.made.clear();
    batch.params.clear();
    batch.slots.clear();
    batch.form.clear();
    batch.number();
  }
  report(state);
}

void plan(benchmark::State& state, Links links) {
  const Device device = device_for(Mode::lazy);
  Batch batch = std::move(Queue(links, state.range(0)).batch());
  batch.drain = 1;
  batch.number();
  const fusion::FusionLimits limits{.buffers = static_cast<int>(device.limits().storage_buffers)};
  std::size_t blocks = 0;
  for (auto _ : state) {
    const std::vector<std::string> names(batch.ops.size(), "op");
    blocks = make_plan(batch.graph(device.runtime()), names, limits)->graph.nodes.size();
  }
  state.counters["blocks"] = static_cast<double>(blocks);
  report(state);
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->Arg(100)->Arg(1000)->Arg(10000);
}
BENCHMARK_CAPTURE(number, held, Links::held)->Apply(sizes);
BENCHMARK_CAPTURE(plan, held, Links::held)->Apply(sizes);
BENCHMARK_CAPTURE(plan, near, Links::near)->Apply(sizes);
BENCHMARK_CAPTURE(plan, dropped, Links::dropped)->Apply(sizes);

}  // namespace
