// The same, lazy by its reference.
// expect: Default<Fusion> is listed, but 'webgpu_forward' without a rule 'output' runs at once
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Default<Fusion>>;
  static RawTensor webgpu_forward(Client&, const RawTensor& x) { return x; }
  static AnyTensor reference(const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
