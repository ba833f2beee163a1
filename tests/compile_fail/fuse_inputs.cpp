// A lazy registration of other inputs than the output rule takes.
// expect: rule 'fuse' has the wrong type
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static AnyTensor fuse(Stream&, const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
