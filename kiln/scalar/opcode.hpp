#pragma once
#include <cstdint>

namespace kiln {

/// The scalar operations. The table in opcode_table.cpp says how each is written, computed and
/// differentiated.
enum class Opcode : std::uint8_t {
  input,
  param,
  constant,
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  softplus,
  relu,
  erf,
  is_nan,
  logical_not,
  cast,
  cast_back,  ///< in adjoints: a gradient that came through a cast, in the float dtype of its user
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  unless_zero,  ///< in adjoints: a gradient that is zero stays zero, whatever the slope
  equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  select,
};

}  // namespace kiln
