// The matrix product in the forms a training step uses, in floating-point operations per second.
#include <benchmark/benchmark.h>

#include "benchmarks/measure.hpp"

namespace {

using namespace bench;
using namespace kiln;

template <class F>
void measure(benchmark::State& state, DType dtype, F product) {
  const Device device = device_for(Mode::lazy);
  if (dtype == DType::f16 && !device.limits().f16) {
    state.SkipWithError("the adapter has no f16");
    return;
  }
  const std::int64_t n = state.range(0);
  const AnyTensor a = random_uniform({n, n}, 1, {-1, 1}, dtype, device);
  const AnyTensor b = random_uniform({n, n}, 2, {-1, 1}, dtype, device);
  const AnyTensor expected = product(a, b);
  const Timed timed = time_calls(state, device, [&] { return product(a, b); });
  check_near(state, timed.last, expected, 0);
  const double size = static_cast<double>(n);
  report_rate(state, "FLOP/s", 2 * size * size * size, timed);
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
