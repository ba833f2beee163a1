// A library with operations that a program loads and unloads. Its siblings differ in a number
// alone.
#include <string>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

struct Times {
  static constexpr std::string_view name = "times";
  Param by = 1;
  [[nodiscard]] Expr body(Expr x) const { return x * by + PLUGIN_FACTOR; }
};

struct Kernel {
  static constexpr std::string_view name = "times_by_kernel";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) {
    const std::int64_t count = out.shape().elements();
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size(64)\n"
                                         "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                                         "  if (id.x >= params.count) { return; }\n"
                                         "  store_out(id.x, x[id.x] * " +
                                         std::to_string(PLUGIN_FACTOR) + ");\n}\n"),
            .workgroup = {64, 1, 1},
            .params = {{"count", count}},
            .grid = {ceil_div(count, 64), 1, 1}};
  }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
    const auto in = x.floats();
    const auto to = out.floats();
    for (std::int64_t i = 0; i < x.shape().elements(); ++i)
      to(i) = in(i) * static_cast<float>(PLUGIN_FACTOR);
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(apply(Kernel{}, grad));
  }
  static AnyTensor reference(const AnyTensor& x) { return x * PLUGIN_FACTOR; }
};
static_assert(Extension<Kernel>);

}  // namespace

/// With f the factor: sum(f * x) + 10 d/dx of that + sum(3 x + f) for x = (1, 2).
extern "C" double run_plugin() {
  const AnyTensor x = tensor({1.0, 2.0}, default_device().autodiff()).require_grad();
  const AnyTensor y = sum(apply(Kernel{}, x));
  const double gradient = y.backward().of(x).to_vector()[0];
  return y.item() + 10 * gradient + sum(apply(Times{3.0}, x)).item();
}
