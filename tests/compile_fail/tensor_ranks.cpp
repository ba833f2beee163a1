// A tensor of one rank is none of another.
// expect: use of deleted function
#include "kiln/kiln.hpp"

using namespace kiln;

Tensor<3> grow(const Tensor<2>& x) { return x; }
