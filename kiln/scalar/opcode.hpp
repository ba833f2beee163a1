#pragma once
#include <cstdint>

namespace kiln {

/// The scalar operations. The table in opcode_table.cpp says how each is written, computed and
/// differentiated.
enum class Opcode : std::uint8_t {
  input,
  param,
  constant,
  coordinate,  ///< of the element that is computed, along an axis: i32
  position,    ///< the number of that element in dense order: u32
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
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  exp2,
  log2,
  log1p,
  expm1,
  floor,
  ceil,
  round,
  trunc,
  sign,
  is_nan,
  is_inf,
  bit_not,
  logical_not,
  cast,
  cast_back,  ///< in adjoints: a gradient that came through a cast, in the float dtype of its user
  add,
  sub,
  mul,
  div,
  pow,
  atan2,
  floor_div,
  mod,
  shift_left,
  shift_right,
  bit_and,
  bit_or,
  bit_xor,
  min,
  max,
  unless_zero,  ///< in adjoints: a gradient that is zero stays zero, whatever the slope
  equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  select,
  index,    ///< a coordinate, then those of the axes after it: i32
  element,  ///< an input's element at an index; a coordinate below 0 counts as 0
  load,     ///< an input's element at a position in its buffer, in elements
};

}  // namespace kiln
