// A forward that waits for the spec of an output rule.
// expect: rule 'webgpu_forward' has the wrong type; without a rule 'output' it must be
// expect: RuleDirectForward<Op, .*TensorSpec&\)
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube>;
  static RawTensor webgpu_forward(Client&, const RawTensor& x, const TensorSpec&) { return x; }
};
static_assert(Extension<Op>);
