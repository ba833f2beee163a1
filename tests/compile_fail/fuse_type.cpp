// A lazy registration that does not take the stream.
// expect: rule 'fuse' has the wrong type; it must be: AnyTensor
// expect: RuleFuse<Op,
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Fusion>;
  static AnyTensor fuse(const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
