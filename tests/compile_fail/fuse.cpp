// Lazy registration by hand, with and without an output rule, with and without a gradient.
// compiles
#include "kiln/kiln.hpp"

using namespace kiln;

template <class T>
struct Counted {
  T tensor;
  std::int64_t count;
};

struct Plain {
  static constexpr std::string_view name = "plain";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Fusion>;
  static AnyTensor fuse(Stream&, const AnyTensor& x, const AnyTensor&) { return x; }
};
static_assert(Extension<Plain>);

struct Structured {
  static constexpr std::string_view name = "structured";
  using layers = Layers<Autodiff, Fusion>;
  std::int64_t count;
  Counted<AnyTensor> fuse(Stream&, const AnyTensor& x) const { return {x, count}; }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const Counted<AnyTensor>&) { return {}; }
  static void backward(const Saved&, const Counted<AnyTensor>& grad, Grads<1>& grads) {
    grads[0].set(grad.tensor);
  }
};
static_assert(Extension<Structured>);

struct Described {
  static constexpr std::string_view name = "described";
  using layers = Layers<Default<Autodiff>, Fusion>;
  static Counted<TensorSpec> output(const TensorSpec& x) { return {x, 1}; }
  static Counted<AnyTensor> fuse(Stream&, const AnyTensor& x) { return {x, 1}; }
  static Counted<AnyTensor> reference(const AnyTensor& x) { return {x, 1}; }
};
static_assert(Extension<Described>);

AnyTensor run(const AnyTensor& x) {
  const Counted<AnyTensor> counted = apply(Structured{2}, apply(Plain{}, x, x));
  return apply(Described{}, counted.tensor).tensor;
}
