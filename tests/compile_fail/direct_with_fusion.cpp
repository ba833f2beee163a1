// An operation that needs values to know its shape cannot be lazy.
// expect: layer Fusion is listed, but there is neither a rule 'output' nor 'fuse'
// expect: leave Fusion out: 'webgpu_forward' then runs at once
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static RawTensor webgpu_forward(Client&, const RawTensor& x) { return x; }
};
static_assert(Extension<Op>);
