// A forward without an output rule that returns no tensor.
// expect: rule 'webgpu_forward' has the wrong type; without a rule 'output' it must be
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube>;
  static std::vector<RawTensor> webgpu_forward(Client&, const RawTensor& x) { return {x}; }
};
static_assert(Extension<Op>);
