// The matrix product in the forms a training step uses, in floating-point operations per second.
#include <benchmark/benchmark.h>

#include <cmath>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

template <class F>
void measure(benchmark::State& state, DType dtype, F product) {
  const Device device = webgpu::device();
  if (dtype == DType::f16 && !device.limits().f16) {
    state.SkipWithError("the adapter has no f16");
    return;
  }
  const std::int64_t n = state.range(0);
  const AnyTensor a = random_uniform({n, n}, 1, device, -1, 1, dtype);
  const AnyTensor b = random_uniform({n, n}, 2, device, -1, 1, dtype);
  const AnyTensor expected = sum(product(a, b));
  device.synchronize();
  constexpr int calls = 10;
  AnyTensor c;
  for (auto _ : state) {
    for (int i = 0; i < calls; ++i) c = product(a, b);
    device.synchronize();
  }
  if (std::isnan(cast(sum(c), DType::f32).item()) || !equal(sum(c), expected).item<bool>())
    state.SkipWithError("the last result is wrong");
  const double n3 = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  state.counters["FLOP/s"] = benchmark::Counter(
      2 * n3 * calls * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.SetLabel(to_string(device));
}

void matmul_f32(benchmark::State& state) {
  measure(state, DType::f32, [](auto& a, auto& b) { return matmul(a, b); });
}
void matmul_f16(benchmark::State& state) {
  measure(state, DType::f16, [](auto& a, auto& b) { return matmul(a, b); });
}
void matmul_lhs_transposed(benchmark::State& state) {
  measure(state, DType::f32, [](auto& a, auto& b) { return matmul(transpose(a), b); });
}
void matmul_rhs_transposed(benchmark::State& state) {
  measure(state, DType::f32, [](auto& a, auto& b) { return matmul(a, transpose(b)); });
}
BENCHMARK(matmul_f32)->Arg(256)->Arg(512)->Arg(1024)->Arg(2048)->Arg(4096)->UseRealTime();
BENCHMARK(matmul_f16)->Arg(512)->Arg(1024)->Arg(4096)->UseRealTime();
BENCHMARK(matmul_lhs_transposed)->Arg(512)->Arg(1024)->Arg(4096)->UseRealTime();
BENCHMARK(matmul_rhs_transposed)->Arg(512)->Arg(1024)->Arg(4096)->UseRealTime();

}  // namespace
