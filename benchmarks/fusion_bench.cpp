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
  using layers = Layers<Autodiff, Cube, Fusion>;

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

  static constexpr Bound bound = Bound::compute;
  struct Saved {
    Checkpoint lhs;
    Checkpoint rhs;
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor&, const AnyTensor& out) {
    return {saver.keep_if(rhs.tracked(), lhs), saver.keep_if(lhs.tracked(), rhs), saver.keep(out)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
    const AnyTensor g = relu_backward(saved.out.get(), grad);
    auto& [lhs, rhs, bias] = grads;
    if (lhs) lhs.set_reduced(matmul(g, transpose(saved.rhs.get()), GradientIn::lhs));
    if (rhs) rhs.set_reduced(matmul(transpose(saved.lhs.get()), g, GradientIn::rhs));
    if (bias) bias.set(g);
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

AnyTensor by_hand_of_row(const Operands& in) {
  return by_hand({in.a, in.b, broadcast_to(in.c, {in.a.dim(0), in.b.dim(1)})});
}

/// The same with all gradients: three products, of which two have relu's mask in their loads.
void matmul_bias_relu_gradients(benchmark::State& state, Mode mode, MatmulForm form) {
  const Device device = device_for(mode);
  const std::int64_t n = state.range(0);
  const auto random = [&](const Shape& shape, std::uint64_t seed) {
    return random_uniform(shape, seed, {-1, 1}, device);
  };
  const auto tracked = [](const AnyTensor& t, const Device& on) {
    return t.to(on.autodiff()).require_grad();
  };
  const Operands plain{random({n, n}, 1), random({n, n}, 2), random({n}, 3)};
  const AnyTensor seed = random({n, n}, 4);
  std::vector<AnyTensor> gradients;  // held until they are computed
  const auto all = [&](const Operands& in, MatmulForm f, const AnyTensor& arriving) {
    const AnyTensor out = f(in);
    const Gradients g = vjp(std::array{out}, std::array{arriving});
    gradients = {g.of(in.a), g.of(in.b), g.of(in.c)};
    return out.detach();
  };
  const Operands in{tracked(plain.a, device), tracked(plain.b, device), tracked(plain.c, device)};
  const Timed timed = time_calls(state, device, [&] { return all(in, form, seed); });
  const double size = static_cast<double>(n);
  report_rate(state, "FLOP/s", 3 * 2 * size * size * size, timed);
  const std::vector<AnyTensor> got = gradients;
  const Device eager = device.eager();
  const Operands again{tracked(plain.a, eager), tracked(plain.b, eager), tracked(plain.c, eager)};
  check_near(state, timed.last, all(again, in_plain_operations, seed.to(eager)), 1e-6 * size);
  for (std::size_t i = 0; i < got.size(); ++i) check_near(state, got[i], gradients[i], 1e-6 * size);
}
BENCHMARK_CAPTURE(matmul_bias_relu_gradients, plain_lazy, Mode::lazy, in_plain_operations)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_bias_relu_gradients, plain_eager, Mode::eager, in_plain_operations)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_bias_relu_gradients, by_hand, Mode::lazy, by_hand_of_row)
    ->Apply(matrix_sizes);

// What comes before a kernel: computed in its loads, or stored first, because somebody holds it.
enum class Before : std::uint8_t { loaded, stored };

using BeforeMatmul = AnyTensor (*)(const AnyTensor&, const AnyTensor&);
AnyTensor mask(const AnyTensor& x, const AnyTensor& y) { return relu_backward(y, x); }
AnyTensor scale(const AnyTensor& x, const AnyTensor&) { return x * 0.5; }
AnyTensor widened(const AnyTensor& x, const AnyTensor&) { return cast(x, DType::f32) * 0.5; }

void matmul_after(benchmark::State& state, Before where, BeforeMatmul before, DType dtype) {
  const Device device = device_for(Mode::lazy);
  if (dtype == DType::f16 && !device.limits().f16) {
    state.SkipWithError("the adapter has no f16");
    return;
  }
  const std::int64_t n = state.range(0);
  const AnyTensor a = random_uniform({n, n}, 1, {-1, 1}, dtype, device);
  const AnyTensor b = random_uniform({n, n}, 2, {-1, 1}, device);
  const AnyTensor c = random_uniform({n, n}, 3, {-1, 1}, device);
  AnyTensor held;
  const auto call = [&] {
    const AnyTensor x = before(a, c);
    if (where == Before::stored) held = x;
    return matmul(x, b);
  };
  if (where == Before::loaded && !is_one_launch(state, device, call)) return;
  const Timed timed = time_calls(state, device, call);
  const double size = static_cast<double>(n);
  report_rate(state, "FLOP/s", 2 * size * size * size, timed);
  const Device eager = device.eager();
  check_near(state, timed.last, matmul(before(a.to(eager), c.to(eager)), b.to(eager)), 1e-6 * size);
}
BENCHMARK_CAPTURE(matmul_after, mask_loaded, Before::loaded, mask, DType::f32)->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_after, mask_stored, Before::stored, mask, DType::f32)->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_after, scale_loaded, Before::loaded, scale, DType::f32)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_after, scale_stored, Before::stored, scale, DType::f32)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_after, cast_loaded, Before::loaded, widened, DType::f16)
    ->Apply(matrix_sizes);
BENCHMARK_CAPTURE(matmul_after, cast_stored, Before::stored, widened, DType::f16)
    ->Apply(matrix_sizes);

/// x + w by a kernel of a user's own, which reads four elements at a time through its loads.
struct Added {
  static constexpr std::string_view name = "added";
  static constexpr std::array inputs = {"x", "w"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand&) {
    constexpr const char* text = R"({{ bindings }}
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = (kiln_workgroup(group, groups).x * {{ workgroup_size_x }} + local.x) * 4;
  if (i < params.n) { store_out4(i, load_x4(i) + load_w4(i)); }
})";
    const std::int64_t n = x.shape().elements();
    return {.source = KernelSource::wgsl(text),
            .workgroup = {256, 1, 1},
            .params = {{"n", n}},
            .grid = {ceil_div(n, 1024), 1, 1},
            .vec4 = {"out"}};
  }
  static void cpu_kernel(const cpu::Input& x, const cpu::Input& w, const cpu::Output& out) {
    const auto a = x.dense<float>();
    const auto b = w.dense<float>();
    const auto to = out.dense<float>();
    constexpr std::int64_t grain = 1 << 14;
    cpu::parallel_for(out.shape().elements(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        to[i] = a[i] + b[i];
    });
  }
};

void before_a_kernel(benchmark::State& state, Before where) {
  const Device device = device_for(Mode::lazy);
  const std::int64_t n = std::int64_t{1} << state.range(0);
  if (!fits(state, device, n)) return;
  const AnyTensor x = random_normal({n}, 1, device);
  const AnyTensor w = random_normal({n}, 2, device);
  AnyTensor held;
  const auto call = [&] {
    const AnyTensor y = relu(x) * 2.0;
    if (where == Before::stored) held = y;
    return apply(Added{}, y, w);
  };
  const Timed timed = time_calls(state, device, call);
  report_rate(state, "bytes of 3 streams/s", 3 * sizeof(float) * static_cast<double>(n), timed);
  check_near(state, timed.last, relu(x) * 2.0 + w, 1e-5);
}
BENCHMARK_CAPTURE(before_a_kernel, loaded, Before::loaded)->Apply(powers_of_two);
BENCHMARK_CAPTURE(before_a_kernel, stored, Before::stored)->Apply(powers_of_two);

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

AnyTensor log_softmax_rows(const AnyTensor& x) { return log_softmax(x, 1); }
AnyTensor rms_norm_rows(const AnyTensor& x) {
  const AnyTensor weight = full({x.dim(1)}, 1.5, x.device());
  return x * rsqrt(mean(x * x, 1, true) + 1e-5) * weight;
}
AnyTensor softmax_columns(const AnyTensor& x) { return softmax(x, 0); }

void rows_of(benchmark::State& state, Mode mode, std::int64_t rows, std::int64_t size,
             AnyTensor (*f)(const AnyTensor&)) {
  const Device device = device_for(mode);
  if (!fits(state, device, rows * size)) return;
  const AnyTensor x = random_normal({rows, size}, 1, device);
  const Timed timed = time_calls(state, device, [&] { return f(x); });
  report_rate(state, "bytes/s", 2 * sizeof(float) * static_cast<double>(rows * size), timed);
  check_near(state, timed.last, f(x.to(device_for(Mode::eager))), 1e-4);
}
void rows_of_1024(benchmark::State& state, Mode mode, AnyTensor (*f)(const AnyTensor&)) {
  rows_of(state, mode, state.range(0), 1024, f);
}
void rows_of_8192(benchmark::State& state, Mode mode, AnyTensor (*f)(const AnyTensor&)) {
  rows_of(state, mode, state.range(0), 8192, f);
}
void rows_of_131072(benchmark::State& state, Mode mode, AnyTensor (*f)(const AnyTensor&)) {
  rows_of(state, mode, state.range(0), 131072, f);
}
/// Along the outer axis of [1024, n].
void columns_of_1024(benchmark::State& state, Mode mode, AnyTensor (*f)(const AnyTensor&)) {
  rows_of(state, mode, 1024, state.range(0), f);
}

/// The loss of rows of 1,024 classes and its gradient. Bytes are those of logits and gradient.
void cross_entropy_gradient(benchmark::State& state) {
  const Device device = device_for(Mode::lazy);
  const std::int64_t rows = state.range(0);
  if (!fits(state, device, rows * 1024)) return;
  const AnyTensor x = random_normal({rows, 1024}, 1, device.autodiff()).require_grad();
  const AnyTensor labels = cast(random_uniform({rows}, 2, {0, 1024}, device), DType::i32);
  AnyTensor loss = zeros({}, device);
  const Timed timed = time_calls(state, device, [&] {
    const AnyTensor value = cross_entropy(x, labels);
    loss = value.detach();
    return value.backward().of(x);
  });
  report_rate(state, "bytes/s", 2 * sizeof(float) * 1024 * static_cast<double>(rows), timed);
}

BENCHMARK_CAPTURE(rows_of_1024, softmax_lazy, Mode::lazy, softmax_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, softmax_eager, Mode::eager, softmax_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, layer_norm_lazy, Mode::lazy, layer_norm_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, layer_norm_eager, Mode::eager, layer_norm_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, log_softmax_lazy, Mode::lazy, log_softmax_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, rms_norm_lazy, Mode::lazy, rms_norm_rows)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_1024, softmax_columns_lazy, Mode::lazy, softmax_columns)
    ->Apply(row_counts);
BENCHMARK_CAPTURE(columns_of_1024, softmax_lazy, Mode::lazy, softmax_columns)->Apply(row_counts);
BENCHMARK_CAPTURE(rows_of_8192, softmax_lazy, Mode::lazy, softmax_rows)->Arg(8192)->UseRealTime();
BENCHMARK_CAPTURE(rows_of_131072, softmax_lazy, Mode::lazy, softmax_rows)->Arg(512)->UseRealTime();
BENCHMARK(cross_entropy_gradient)->Apply(row_counts);

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
