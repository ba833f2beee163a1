// The smallest whole operation: a kernel, its gradient, its definition, and the check of all three.
#include <exception>
#include <iostream>

#include "kiln/kiln.hpp"
#include "smooth_wgsl.hpp"

using namespace kiln;

/// The mean of each element and the two beside it in its row; beyond the ends there are zeros.
struct Smooth {
  static constexpr std::string_view name = "smooth";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  // The result's shape and dtype, and what is refused.
  static TensorSpec output(const TensorSpec& x) {
    if (x.shape.rank() != 2) throw ShapeError("smooth: x must have rank 2 (" + to_string(x) + ")");
    if (!is_float(x.dtype)) throw DTypeError("smooth: x must be a float (" + to_string(x) + ")");
    return x;
  }

  // On a GPU.
  static webgpu::Launch webgpu_kernel(const Operand& x, const Operand& out) {
    const std::int64_t count = out.shape().elements();
    return {.source = KernelSource::wgsl(smooth_wgsl),
            .workgroup = {64, 1, 1},
            .params = {{"count", count}, {"columns", x.dim(1)}},
            .grid = {ceil_div(count, 64), 1, 1}};
  }

  // On the host.
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
    const auto in = x.floats();
    const auto to = out.floats();
    cpu::parallel_for(x.dim(0), [&](std::int64_t row) {
      for (std::int64_t i = 0; i < x.dim(1); ++i) {
        const float left = i > 0 ? in(row, i - 1) : 0;
        const float right = i + 1 < x.dim(1) ? in(row, i + 1) : 0;
        to(row, i) = (left + in(row, i) + right) / 3;
      }
    });
  }

  // The gradient: nothing needs to be kept, since each output passes a third to the same elements.
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(apply(Smooth{}, grad));
  }

  // What it means, in ordinary operations.
  static AnyTensor reference(const AnyTensor& x) {
    const std::int64_t n = x.shape()[1];
    const AnyTensor zero = zeros({x.dim(0), 1}, x.dtype(), x.device());
    const AnyTensor padded = concat({zero, x, zero}, 1);
    return (slice(padded, 1, 0, n) + x + slice(padded, 1, 2)) / 3;
  }
};
static_assert(Extension<Smooth>);

Tensor<2> smooth(const Tensor<2>& x) { return apply(Smooth{}, x); }

int main() {
  try {
    const Device device = default_device();
    const AnyTensor x =
        tensor({{0.0, 0.0, 3.0}, {0.0, 0.0, 6.0}}, device.autodiff()).require_grad();
    const AnyTensor y = smooth(x);
    std::cout << to_string(device) << "\n" << y << "\n" << sum(y * y).backward().of(x) << "\n";

    const CheckReport report =
        check_op(Smooth{}, {.devices = {device},
                            .cases = {{"odd sizes", {{3, 67}}}, {"one column", {{5, 1}}}},
                            .refused = {{"a vector", {{4}}}}});
    std::cout << report.table();
    return report.passed() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
