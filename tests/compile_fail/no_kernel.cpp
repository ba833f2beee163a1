// Layer Cube without its rule.
// expect: layer Cube is listed, but there is no rule 'webgpu_kernel'
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  struct Saved {
    Checkpoint x;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor&, const AnyTensor&) {
    return {saver.keep(x)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) {
    grads[0].set(grad);
    grads[1].set(saved.x.get());
  }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor&) { return x; }
};
static_assert(Extension<Op>);
