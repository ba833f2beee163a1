#pragma once
/// The scalar functions of numbers, in double precision and in 64 bits.
#include <limits>
#include <optional>

#include "fuzz/scalars.hpp"

namespace kiln::fuzz {

/// A function of one float, its slope, and where both are smooth.
struct Smooth {
  double (*value)(double);
  double (*slope)(double);
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
std::optional<Smooth> smooth(Fn fn);

/// How far f may be from f(x) if x is off by `error`: f is monotonous, or flat enough for double
/// that.
double spread(double (*f)(double), double x, double error);

/// floor, ceil, round or trunc.
double whole(Fn fn, double x);

/// A function of integers, exact: the low 32 bits of what 64 hold.
double integer(Fn fn, DType dtype, double x, double y);

}  // namespace kiln::fuzz
