// A lazy registration of an operation that is not lazy.
// expect: there is a rule 'fuse', but layer Fusion is not listed
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Default<Cube>>;
  static AnyTensor fuse(Stream&, const AnyTensor& x) { return x; }
  static AnyTensor reference(const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
