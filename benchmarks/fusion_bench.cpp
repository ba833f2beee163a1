// What fusion is worth: the same code queued and fused (lazy), and run operation by operation
// (eager).
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "benchmarks/measure.hpp"
#include "kiln/fusion/inspect.hpp"

namespace {

using namespace bench;
using namespace kiln;

// The largest sizes are for GPUs.
using Sizes = benchmark::internal::Benchmark;
void matrix_sizes(Sizes* sizes) { sizes->Arg(512)->Arg(1024)->Arg(4096)->UseRealTime(); }
void powers_of_two(Sizes* sizes) { sizes->Arg(20)->Arg(22)->Arg(24)->Arg(26)->UseRealTime(); }
void row_counts(Sizes* sizes) { sizes->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime(); }

/// Whether one call of `f` is one launch, nothing else being queued; a fault is reported.
template <class F>
bool is_one_launch(benchmark::State& state, const Device& device, F f) {
  device.flush();
  const AnyTensor out = f();
  if (inspect(device).launches == 1) return true;
  state.SkipWithError("a call is not one launch");
  return false;
}

// relu(matmul(a, b) + c), whose end goes into the matrix product.

/// By hand: the library's matrix product with an end of its own.
struct FusedMatmul {
  static constexpr std::string_view name = "fused_matmul";
  static constexpr std::array inputs = {"lhs", "rhs", "bias"};
  using layers = Layers<Cube, Fusion>;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&) {
    return matmul_spec(name, lhs, rhs);
  }
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand&,
                                      const Operand& out, const Limits& limits) {
    webgpu::Launch launch = webgpu::tiled_matmul(lhs, rhs, out, limits);
    launch.store = end();
    return launch;
  }
  static void cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs, const cpu::Input& bias,
                         const cpu::Output& out) {
    cpu::matmul(lhs, rhs, out, end(), {&bias, 1});
  }
  static Epilogue end() {
    return epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
  }
};

struct Operands {
  AnyTensor a;
  AnyTensor b;
  AnyTensor c;
};
using MatmulForm = AnyTensor (*)(const Operands&);

AnyTensor in_plain_operations(const Operands& in) { return relu(matmul(in.a, in.b) + in.c); }
AnyTensor by_hand(const Operands& in) { return apply(FusedMatmul{}, in.a, in.b, in.c); }

void matmul_bias_relu(benchmark::State& state, Mode mode, MatmulForm form) {
  const Device device = device_for(mode);
  const std::int64_t n = state.range(0);
  const auto random = [&](std::uint64_t seed) {
    return random_uniform({n, n}, seed, {-1, 1}, device);
  };
  const Operands in{random(1), random(2), random(3)};
  const auto call = [&] { return form(in); };
  if (mode == Mode::lazy && !is_one_launch(state, device, call)) return;
  const Timed timed = time_calls(state, device, call);
  const double size = static_cast<double>(n);
  report_rate(state, "FLOP/s", 2 * size * size * size, timed);
  const Device eager = device.eager();
  check_near(state, timed.last,
             in_plain_operations({in.a.to(eager), in.b.to(eager), in.c.to(eager)}), 1e-6 * size);
}
BENCHMARK_CAPTURE(matmul_bias_relu, plain_lazy, Mode::lazy, in_plain_operations)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_bias_relu, plain_eager, Mode::eager, in_plain_operations)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_bias_relu, by_hand, Mode::lazy, by_hand)->Apply(matrix_sizes);

/// Eight operations that every peer has and fuses. What must move is a, b and the result.
AnyTensor eight_operations(const AnyTensor& a, const AnyTensor& b) {
  AnyTensor t = a + b;
  t = t * a;
  t = relu(t);
  t = t - b;
  t = t * 0.5;
  t = abs(t);
  t = t + 1;
  return t * b;
}

void chain_of_8(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode);
  const std::int64_t n = std::int64_t{1} << state.range(0);
  if (!fits(state, device, n)) return;
  const AnyTensor a = random_normal({n}, 1, device);
  const AnyTensor b = random_normal({n}, 2, device);
  const auto call = [&] { return eight_operations(a, b); };
  if (mode == Mode::lazy && !is_one_launch(state, device, call)) return;
  const Timed timed = time_calls(state, device, call);
  report_rate(state, "bytes of 3 streams/s", 3 * sizeof(float) * static_cast<double>(n), timed);
  const Device other = device_for(mode == Mode::lazy ? Mode::eager : Mode::lazy);
  check_near(state, timed.last, eight_operations(a.to(other), b.to(other)), 1e-3);
}
BENCHMARK_CAPTURE(chain_of_8, lazy, Mode::lazy)->Apply(powers_of_two);
BENCHMARK_CAPTURE(chain_of_8, eager, Mode::eager)->Apply(powers_of_two);

// Composites: reductions with elementwise operations between. Bytes are those of input and result.

AnyTensor softmax_rows(const AnyTensor& x) { return softmax(x, 1); }
AnyTensor layer_norm_rows(const AnyTensor& x) {
  const AnyTensor weight = full({x.dim(1)}, 1.5, x.device());
  const AnyTensor bias = full({x.dim(1)}, 0.5, x.device());
  return layer_norm(x, weight, bias);
}

void rows_of_1024(benchmark::State& state, Mode mode, AnyTensor (*f)(const AnyTensor&)) {
  const Device device = device_for(mode);
  const std::int64_t rows = state.range(0);
  if (!fits(state, device, rows * 1024)) return;
  const AnyTensor x = random_normal({rows, 1024}, 1, device);
  const Timed timed = time_calls(state, device, [&] { return f(x); });
  report_rate(state, "bytes/s", 2 * sizeof(float) * 1024 * static_cast<double>(rows), timed);
  check_near(state, timed.last, f(x.to(device_for(Mode::eager))), 1e-4);
}
BENCHMARK_CAPTURE(rows_of_1024, softmax_lazy, Mode::lazy, softmax_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, softmax_eager, Mode::eager, softmax_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, layer_norm_lazy, Mode::lazy, layer_norm_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, layer_norm_eager, Mode::eager, layer_norm_rows)->Apply(row_counts);

/// A network 64-256-256-10 in plain operations, and a batch of 128 that it learns by heart.
class Training {
 public:
  explicit Training(const Device& device) {
    constexpr std::array<std::int64_t, 4> widths{64, 256, 256, 10};
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      const double deviation = std::sqrt(2.0 / static_cast<double>(widths[i]));
      parameters_.push_back(
          random_normal({widths[i], widths[i + 1]}, i, {0, deviation}, device).require_grad());
      parameters_.push_back(zeros({widths[i + 1]}, device).require_grad());
    }
    images_ = random_uniform({batch, widths.front()}, 9, device);
    std::vector<std::int32_t> labels(batch);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
    labels_ = tensor(labels, {batch}, device);
  }

  /// Gives the loss before the step.
  AnyTensor step() {
    AnyTensor x = images_;
    for (std::size_t i = 0; i < parameters_.size(); i += 2) {
      x = matmul(x, parameters_[i]) + parameters_[i + 1];
      if (i + 2 < parameters_.size()) x = relu(x);
    }
    const AnyTensor loss = cross_entropy(x, labels_);
    parameters_ = adam_.step(parameters_, loss.backward());
    return loss.detach();
  }

 private:
  static constexpr std::int64_t batch = 128;
  Adam adam_{{.learning_rate = 1e-3}};
  std::vector<AnyTensor> parameters_;
  AnyTensor images_;
  AnyTensor labels_;
};

void training_step(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode).autodiff();
  Training training(device);
  const float first = training.step().item();
  for (int i = 0; i < 20; ++i) (void)training.step().item();
  const Timed timed = time_calls(state, device, [&] { return training.step(); });
  if (!(timed.last.item() < first)) state.SkipWithError("the loss did not fall");
}
BENCHMARK_CAPTURE(training_step, lazy, Mode::lazy)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(training_step, eager, Mode::eager)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
