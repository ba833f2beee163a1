// A reference that returns no tensor.
// expect: rule 'reference' has the wrong type
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Default<Cube>, Default<Fusion>>;
  static Shape reference(const AnyTensor& x) { return x.shape(); }
};
static_assert(Extension<Op>);
