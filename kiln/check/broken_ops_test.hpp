#pragma once
/// relu(lhs @ rhs + bias) with a kernel of its own, right in every way; and the ways to get it
/// wrong.
#include <string>

#include "kiln/check/check.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln::broken {

/// Of elementwise operations and a reduction, apart from the library's own matmul.
inline AnyTensor small_matmul(const AnyTensor& a, const AnyTensor& b) {
  return sum(unsqueeze(a, -1) * unsqueeze(b, -3), -2);
}

/// The kernel, from how it reads lhs, when a thread stops, and what it makes of a sum.
inline std::string kernel_text(const std::string& lhs, const std::string& outside,
                               const std::string& relu) {
  return R"(
{{ bindings }}
@compute @workgroup_size({{ workgroup_size_x }}, {{ workgroup_size_y }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let group = kiln_workgroup(id, groups);
  let row = group.y * {{ workgroup_size_y }} + local.y;
  let col = group.x * {{ workgroup_size_x }} + local.x;
  if ()" +
         outside +
         R"() { return; }
  let a = lhs_batch(group.z);
  let b = rhs_batch(group.z);
  var sum: Acc = 0;
  for (var k = 0u; k < params.k; k++) { sum += Acc(lhs[)" +
         lhs + R"(]) * Acc(rhs[b + k * params.n + col]); }
  let index = (group.z * params.m + row) * params.n + col;
  let x = sum + Acc(bias[index]);
  store_out(index, Stored()" +
         relu + R"());
}
)";
}

constexpr const char* right_lhs = "a + row * params.k + k";
constexpr const char* right_bounds = "row >= params.m || col >= params.n";
constexpr const char* right_relu = "select(x, 0.0, x <= 0.0)";

struct Right {
  static constexpr std::string_view name = "right";
  static constexpr std::array inputs = {"lhs", "rhs", "bias"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&) {
    return matmul_spec("right", lhs, rhs);
  }

  static webgpu::Launch launch(const std::string& text, const Operand& lhs, const Operand& out) {
    const std::string stored =
        out.dtype == DType::f16 ? "alias Stored = f16;\n" : "alias Stored = f32;\n";
    return {.source = KernelSource::wgsl(stored + text, "broken.wgsl"),
            .workgroup = {4, 4, 1},
            .params = {{"m", out.dim(-2)}, {"k", lhs.dim(-1)}, {"n", out.dim(-1)}},
            .grid = {ceil_div(out.dim(-1), 4), ceil_div(out.dim(-2), 4), out.batch()}};
  }
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand&, const Operand&,
                                      const Operand& out) {
    return launch(kernel_text(right_lhs, right_bounds, right_relu), lhs, out);
  }

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
    if (lhs) lhs.set_reduced(small_matmul(g, transpose(saved.rhs.get())));
    if (rhs) rhs.set_reduced(small_matmul(transpose(saved.lhs.get()), g));
    if (bias) bias.set(g);
  }
  static AnyTensor reference(const AnyTensor& lhs, const AnyTensor& rhs, const AnyTensor& bias) {
    return relu(small_matmul(lhs, rhs) + bias);
  }
};
static_assert(Extension<Right>);

// Each is Right with one rule replaced.

struct ZeroGradient : Right {
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
    Right::backward(saved, grad, grads);
    if (grads[1]) grads[1].set(saved.lhs.get() * 0.0);
  }
};

struct SlotsSwapped : Right {
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
    const AnyTensor g = relu_backward(saved.out.get(), grad);
    auto& [lhs, rhs, bias] = grads;
    if (rhs) rhs.set(small_matmul(g, transpose(saved.rhs.get())));
    if (lhs) lhs.set(small_matmul(transpose(saved.lhs.get()), g));
    if (bias) bias.set(g);
  }
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor&, const AnyTensor& out) {
    return {saver.keep(lhs), saver.keep(rhs), saver.keep(out)};
  }
};

struct WrongGradientShape : Right {
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
    const AnyTensor g = relu_backward(saved.out.get(), grad);
    Right::backward(saved, grad, grads);
    if (grads[0]) grads[0].set(small_matmul(g, transpose(saved.rhs.get())));
  }
};

struct FirstBatchOnly : Right {
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
    const AnyTensor g = relu_backward(saved.out.get(), grad);
    Right::backward(saved, grad, grads);
    if (grads[0]) grads[0].set(slice(small_matmul(g, transpose(saved.rhs.get())), 0, 0, 1));
  }
};

struct LostNan : Right {
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand&, const Operand&,
                                      const Operand& out) {
    return launch(kernel_text(right_lhs, right_bounds, "select(0.0, x, x > 0.0)"), lhs, out);
  }
};

struct StridesIgnored : Right {
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand&, const Operand&,
                                      const Operand& out) {
    webgpu::Launch made = launch(kernel_text(right_lhs, right_bounds, right_relu), lhs, out);
    made.strided = true;
    made.dense = {"rhs", "bias"};
    return made;
  }
};

struct LastTileUnwritten : Right {
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand&, const Operand&,
                                      const Operand& out) {
    webgpu::Launch made = launch(kernel_text(right_lhs, right_bounds, right_relu), lhs, out);
    made.grid[1] = out.dim(-2) / 4;
    return made;
  }
};

struct WritesOutside : Right {
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand&, const Operand&,
                                      const Operand& out) {
    return launch(kernel_text(right_lhs, "row > params.m || col >= params.n", right_relu), lhs,
                  out);
  }
};

struct WrongRuleDtype : Right {
  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&) {
    return {matmul_spec("wrong", lhs, rhs).shape, DType::f32};
  }
};

struct KeepsBiasForOut : Right {
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor& bias, const AnyTensor&) {
    return {saver.keep(lhs), saver.keep(rhs), saver.keep(bias)};
  }
};

struct KeepsForItself : Right {
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor&, const AnyTensor& out) {
    return {saver.keep_if(lhs.tracked(), lhs), saver.keep_if(rhs.tracked(), rhs), saver.keep(out)};
  }
};

/// Two times x, without a gradient, its forward written by hand. `shape` and `dtype` say what it
/// really gives.
template <class Forward>
struct ByHand {
  static constexpr std::string_view name = "by_hand";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static RawTensor webgpu_forward(Client& client, const RawTensor& x, const TensorSpec& out) {
    return Forward::run(client, x, out);
  }
  static AnyTensor reference(const AnyTensor& x) { return x * 1.0; }
};

struct OtherShape {
  static RawTensor run(Client& client, const RawTensor& x, const TensorSpec& out) {
    return client.empty({Shape{x.shape().elements()}, out.dtype});
  }
};

struct OtherDtype {
  static RawTensor run(Client& client, const RawTensor&, const TensorSpec& out) {
    return client.zeros({out.shape, DType::i32});
  }
};

struct CopiesTooMuch {
  static RawTensor run(Client& client, const RawTensor& x, const TensorSpec& out) {
    RawTensor result = client.empty(out);
    client.launch(
        KernelSource::wgsl(
            "@group(0) @binding(0) var<storage, read> x: array<u32>;\n"
            "@group(0) @binding(1) var<storage, read_write> y: array<u32>;\n"
            "@compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
            "  y[id.x] = x[id.x];\n}\n"),
        {16, 1, 1}, {1, 1, 1}, {client.contiguous(x), result});
    return result;
  }
};

struct ChangesInput {
  static RawTensor run(Client& client, const RawTensor& x, const TensorSpec& out) {
    RawTensor result = client.empty(out);
    client.copy(x, result);
    client.launch(
        KernelSource::wgsl("@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
                           "@compute @workgroup_size(1) fn main() { x[2] = 9.0; }\n"),
        {1, 1, 1}, {1, 1, 1}, {x});
    return result;
  }
};

/// Each element times a number by a kernel of each runtime; that of an adapter is wrong.
struct Doubled {
  static constexpr std::string_view name = "doubled";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) {
    return {.source = KernelSource::wgsl(
                "{{ bindings }}\n@compute @workgroup_size({{ workgroup_size_x }})\n"
                "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                "  if (id.x < params.count) { store_out(id.x, x[id.x] * 3); }\n}\n"),
            .params = {{"count", out.shape().elements()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
    const auto from = x.dense<float>();
    for (std::size_t i = 0; i < from.size(); ++i) out.dense<float>()[i] = 2 * from[i];
  }
};

/// Has the same fault as its own reference, as both use one kernel.
struct SharedFault : Doubled {
  static constexpr std::string_view name = "shared_fault";
  static AnyTensor reference(const AnyTensor& x) { return apply(Doubled{}, x); }
};

/// x times `by`; its gradient counts on the value that `by` usually has.
struct ForgetsParam {
  static constexpr std::string_view name = "forgets_param";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  Param by;
  struct Times {
    static constexpr std::string_view name = "times";
    Param by;
    Expr body(Expr x) const { return x * by; }
  };
  static TensorSpec output(const TensorSpec& x) { return x; }
  AnyTensor reference(const AnyTensor& x) const { return apply(Times{by}, x); }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(grad * 2.0);
  }
};

/// x times `by`, by a kernel into which a rule that runs once puts the number itself.
struct BakesParam {
  static constexpr std::string_view name = "bakes_param";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Param by;
  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    return {.source = KernelSource::wgsl(
                "{{ bindings }}\n@compute @workgroup_size({{ workgroup_size_x }})\n"
                "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                "  if (id.x < params.count) { store_out(id.x, x[id.x] * Elem(params.by)); }\n}\n"),
            .params = {{"count", out.shape().elements()}, {"by", by.value()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  }
  AnyTensor reference(const AnyTensor& x) const { return apply(ForgetsParam::Times{by}, x); }
};

/// x turned around along `axis`; its gradient is turned along the first one.
struct ForgetsAttribute {
  static constexpr std::string_view name = "forgets_attribute";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  int axis;
  static TensorSpec output(const TensorSpec& x) { return x; }
  AnyTensor reference(const AnyTensor& x) const { return turned(x, axis); }
  static AnyTensor turned(const AnyTensor& x, int along) {
    const std::int64_t half = x.dim(along) / 2;
    return concat({slice(x, along, half), slice(x, along, 0, half)}, along);
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(turned(grad, 0));
  }
};

/// Takes every pair of shapes in its rule, and refuses those that differ in its kernel's.
struct RefusesLate {
  static constexpr std::string_view name = "refuses_late";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static RawTensor webgpu_forward(Client& client, const RawTensor& x, const RawTensor& y,
                                  const TensorSpec& out) {
    if (x.shape() != y.shape()) throw ShapeError("refuses_late: x and y must have one shape");
    RawTensor result = client.empty(out);
    client.copy(x, result);
    return result;
  }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor&) { return x * 1.0; }
};

/// exp; computed a second time it gives another result.
struct Unrepeatable {
  static constexpr std::string_view name = "unrepeatable";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  mutable int times = 0;

  static TensorSpec output(const TensorSpec& x) { return x; }
  RawTensor webgpu_forward(Client& client, const RawTensor& x, const TensorSpec& out) const {
    RawTensor result = client.empty(out);
    client.launch(
        KernelSource::wgsl(std::string(times++ == 0 ? "const by = 1.0;\n" : "const by = 2.0;\n") +
                           "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
                           "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
                           "@compute @workgroup_size(64)\n"
                           "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                           "  if (id.x < 15u) { y[id.x] = by * exp(x[id.x]); }\n}\n"),
        {64, 1, 1}, {1, 1, 1}, {client.contiguous(x), result});
    return result;
  }
  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor&, const AnyTensor& out) {
    return {saver.keep(out)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(grad * saved.out.get());
  }
  static AnyTensor reference(const AnyTensor& x) { return exp(x); }
};

/// The gradient of `negate`: its kernel takes strides, and ignores them.
struct NegateBackward {
  static constexpr std::string_view name = "negate_backward";
  static constexpr std::array inputs = {"grad"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& grad) { return grad; }
  static webgpu::Launch webgpu_kernel(const Operand& grad, const Operand& out) {
    (void)grad;
    return {.source = KernelSource::wgsl(
                "{{ bindings }}\n@compute @workgroup_size({{ workgroup_size_x }})\n"
                "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                "  if (id.x < params.count) { store_out(id.x, -grad[id.x]); }\n}\n"),
            .params = {{"count", out.shape().elements()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1},
            .strided = true};
  }
};

struct Negate {
  static constexpr std::string_view name = "negate";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static constexpr Bound bound = Bound::memory;
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(apply(NegateBackward{}, grad));
  }
  static AnyTensor reference(const AnyTensor& x) { return -x; }
};

}  // namespace kiln::broken
