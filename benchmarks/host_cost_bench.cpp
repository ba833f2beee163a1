// What one small operation costs the host: f(x) = x + 1 on 16 elements, 5,000 in a row, nothing
// read until the end.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

constexpr int calls = 5000;

void report(benchmark::State& state, const Device& device, const AnyTensor& last, float expected) {
  device.synchronize();
  if (last.to_vector().front() != expected) state.SkipWithError("the last result is wrong");
  state.SetItemsProcessed(state.iterations() * calls);
  state.counters["per call"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * calls,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetLabel(to_string(device));
}

/// Independent calls on one input: time until all are queued and done.
void add_one(benchmark::State& state) {
  const Device device = webgpu::device();
  const AnyTensor x = ones({16}, device);
  AnyTensor y = x;
  for (auto _ : state) {
    for (int i = 0; i < calls; ++i) y = x + 1;
    device.synchronize();
  }
  report(state, device, y, 2);
}
BENCHMARK(add_one)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Each on the result of the one before.
void add_one_chained(benchmark::State& state) {
  const Device device = webgpu::device();
  const AnyTensor x = ones({16}, device);
  AnyTensor y = x;
  for (auto _ : state) {
    y = x;
    for (int i = 0; i < calls; ++i) y = y + 1;
    device.synchronize();
  }
  report(state, device, y, 1 + calls);
}
BENCHMARK(add_one_chained)->Unit(benchmark::kMillisecond)->UseRealTime();

/// With a gradient graph growing behind it, which is dropped at the end.
void add_one_tracked(benchmark::State& state) {
  const Device device = webgpu::device().autodiff();
  const AnyTensor x = ones({16}, device).require_grad();
  AnyTensor y = x;
  for (auto _ : state) {
    y = x;
    for (int i = 0; i < calls; ++i) y = y + 1;
    device.synchronize();
  }
  report(state, device, y, 1 + calls);
}
BENCHMARK(add_one_tracked)->Unit(benchmark::kMillisecond)->UseRealTime();

/// A kernel with rules of its own: a matrix product of 4 x 4.
void small_matmul(benchmark::State& state) {
  const Device device = webgpu::device();
  const AnyTensor x = ones({4, 4}, device);
  AnyTensor y = x;
  for (auto _ : state) {
    for (int i = 0; i < calls; ++i) y = matmul(x, x);
    device.synchronize();
  }
  report(state, device, y, 4);
}
BENCHMARK(small_matmul)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
