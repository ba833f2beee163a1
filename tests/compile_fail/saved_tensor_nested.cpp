// Nor may it hold one deeper down.
// expect: struct Saved may not hold a tensor
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
  struct Saved {
    std::vector<std::optional<AnyTensor>> x;
  };
  static Saved save(const Saver&, const AnyTensor& x, const AnyTensor&, const AnyTensor&) {
    return {{x}};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) {
    grads[0].set(grad);
    grads[1].set(*saved.x[0]);
  }
};
static_assert(Extension<Op>);
