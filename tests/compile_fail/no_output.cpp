// Layer Fusion without its rule.
// expect: layer Fusion is listed, but there is neither a rule 'output' nor 'fuse'
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Default<Autodiff>, Default<Cube>, Fusion>;
  static AnyTensor reference(const AnyTensor& x, const AnyTensor&) { return x; }
};
static_assert(Extension<Op>);
