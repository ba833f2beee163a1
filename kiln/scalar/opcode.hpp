#pragma once
#include <cstdint>

namespace kiln {

/// The scalar operations. How each is spelled, computed and differentiated stands in
/// opcode_table.cpp and nowhere else.
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
  cast_back,  ///< of adjoints: a gradient that came through a cast, in the float dtype its user has
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  unless_zero,  ///< of adjoints: a gradient that is zero stays zero, whatever the slope
  equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  select,
};

}  // namespace kiln
