// The matrix multiplication of the cpu runtime alone: shapes of a training step and large ones, in
// floating-point operations per second.
#include <benchmark/benchmark.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kiln/runtime/cpu/gemm.hpp"

namespace {

using namespace kiln::cpu;

struct Product {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;
};

std::vector<float> values(std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<float>(i % 17) / 16.0F - 0.5F;
  }
  return result;
}

void multiply(const Product& p, const std::vector<float>& a, const std::vector<float>& b,
              std::vector<float>& out) {
  const GemmOperand left{a.data(), p.a_transposed ? 1 : p.k, p.a_transposed ? p.m : 1};
  const GemmOperand right{b.data(), p.b_transposed ? 1 : p.n, p.b_transposed ? p.k : 1};
  gemm(p.m, p.n, p.k, left, right, out.data(), p.n);
}

/// Times `run` on that many threads.
template <class F>
void measure(benchmark::State& state, int threads, double operations, F run) {
  tbb::task_arena arena(threads);
  arena.execute([&] {
    run();
    for ([[maybe_unused]] auto round : state) {
      run();
    }
  });
  state.counters["FLOP/s"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
}

double operations_of(const Product& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

/// Arguments: m, n, k, a transposed, b transposed, threads.
void product(benchmark::State& state) {
  const Product p{state.range(0), state.range(1), state.range(2), state.range(3) != 0,
                  state.range(4) != 0};
  const std::vector<float> a = values(p.m * p.k);
  const std::vector<float> b = values(p.k * p.n);
  std::vector<float> out(static_cast<std::size_t>(p.m * p.n));
  measure(state, static_cast<int>(state.range(5)), operations_of(p),
          [&] { multiply(p, a, b, out); });
}

/// All products of a step of the network 64-256-256-10, batch 128. Argument: threads.
void training_step(benchmark::State& state) {
  const std::vector<Product> products{
      {128, 256, 64, false, false}, {128, 256, 256, false, false}, {128, 10, 256, false, false},
      {256, 10, 128, true, false},  {128, 256, 10, false, true},   {256, 256, 128, true, false},
      {128, 256, 256, false, true}, {64, 256, 128, true, false},
  };
  const std::vector<float> a = values(65536);
  const std::vector<float> b = values(65536);
  std::vector<float> out(65536);
  double operations = 0;
  for (const Product& p : products) {
    operations += operations_of(p);
  }
  measure(state, static_cast<int>(state.range(0)), operations, [&] {
    for (const Product& p : products) {
      multiply(p, a, b, out);
    }
  });
}

void shapes(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t threads : {2, 1}) {
    bench->Args({1024, 1024, 1024, 0, 0, threads})
        ->Args({1024, 1024, 1024, 1, 0, threads})
        ->Args({1024, 1024, 1024, 0, 1, threads})
        ->Args({128, 256, 64, 0, 0, threads})
        ->Args({128, 256, 256, 0, 0, threads})
        ->Args({128, 10, 256, 0, 0, threads})
        ->Args({256, 256, 128, 1, 0, threads})
        ->Args({128, 256, 256, 0, 1, threads});
  }
}
BENCHMARK(product)->Apply(shapes)->UseRealTime();
BENCHMARK(training_step)->Arg(2)->Arg(1)->UseRealTime();

}  // namespace
