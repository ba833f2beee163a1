// Names of other operands than a forward without an output rule takes.
// expect: 'inputs' must name as many operands
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube>;
  static constexpr std::array inputs = {"x", "y"};
  static RawTensor webgpu_forward(Client&, const RawTensor& x) { return x; }
};
static_assert(Extension<Op>);
