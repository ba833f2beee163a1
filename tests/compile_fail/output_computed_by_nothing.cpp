// An output rule alone.
// expect: there is a rule 'output', but nothing computes it
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
};
static_assert(Extension<Op>);
