// A kernel of the host whose operands have no names.
// expect: rule 'cpu_kernel' needs the operands' names
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input&, const cpu::Output&) {}
};
static_assert(Extension<Op>);
