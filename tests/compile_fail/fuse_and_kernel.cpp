// A kernel beside a lazy registration that does not say what is allocated.
// expect: a kernel needs the rule 'output'
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static RawTensor webgpu_forward(Client&, const RawTensor& x) { return x; }
  static AnyTensor fuse(Stream&, const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
