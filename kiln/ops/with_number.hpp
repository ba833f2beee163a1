#pragma once
#include <string_view>

#include "kiln/scalar/expr.hpp"

namespace kiln {

/// The operation `Op` of two operands with a number, which travels with each launch, in place of
/// the second operand.
template <class Op>
struct BeforeNumber {
  static constexpr std::string_view name = Op::name;
  Param b;
  Expr body(Expr a) const { return Op::body(a, b); }
};

/// The same with a number in place of the first operand.
template <class Op>
struct AfterNumber {
  static constexpr std::string_view name = Op::name;
  Param a;
  Expr body(Expr b) const { return Op::body(a, b); }
};

}  // namespace kiln
