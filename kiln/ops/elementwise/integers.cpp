#include "kiln/ops/elementwise/integers.hpp"

#include "kiln/ops/with_number.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

struct FloorDiv {
  static constexpr std::string_view name = "floor_div";
  static Expr body(Expr a, Expr b) { return floor_div(a, b); }
};
struct Mod {
  static constexpr std::string_view name = "mod";
  static Expr body(Expr a, Expr b) { return mod(a, b); }
};
struct LeftShift {
  static constexpr std::string_view name = "left_shift";
  static Expr body(Expr a, Expr b) { return a << b; }
};
struct RightShift {
  static constexpr std::string_view name = "right_shift";
  static Expr body(Expr a, Expr b) { return a >> b; }
};
struct BitAnd {
  static constexpr std::string_view name = "bit_and";
  static Expr body(Expr a, Expr b) { return a & b; }
};
struct BitOr {
  static constexpr std::string_view name = "bit_or";
  static Expr body(Expr a, Expr b) { return a | b; }
};
struct BitXor {
  static constexpr std::string_view name = "bit_xor";
  static Expr body(Expr a, Expr b) { return a ^ b; }
};
struct BitNot {
  static constexpr std::string_view name = "bit_not";
  static Expr body(Expr x) { return ~x; }
};

}  // namespace

AnyTensor floor_div(const AnyTensor& a, const AnyTensor& b) { return apply(FloorDiv{}, a, b); }
AnyTensor floor_div(const AnyTensor& a, Number b) { return apply(BeforeNumber<FloorDiv>{{b}}, a); }
AnyTensor floor_div(Number a, const AnyTensor& b) { return apply(AfterNumber<FloorDiv>{{a}}, b); }
AnyTensor mod(const AnyTensor& a, const AnyTensor& b) { return apply(Mod{}, a, b); }
AnyTensor mod(const AnyTensor& a, Number b) { return apply(BeforeNumber<Mod>{{b}}, a); }
AnyTensor mod(Number a, const AnyTensor& b) { return apply(AfterNumber<Mod>{{a}}, b); }
AnyTensor left_shift(const AnyTensor& a, const AnyTensor& b) { return apply(LeftShift{}, a, b); }
AnyTensor left_shift(const AnyTensor& a, Number b) {
  return apply(BeforeNumber<LeftShift>{{b}}, a);
}
AnyTensor left_shift(Number a, const AnyTensor& b) { return apply(AfterNumber<LeftShift>{{a}}, b); }
AnyTensor right_shift(const AnyTensor& a, const AnyTensor& b) { return apply(RightShift{}, a, b); }
AnyTensor right_shift(const AnyTensor& a, Number b) {
  return apply(BeforeNumber<RightShift>{{b}}, a);
}
AnyTensor right_shift(Number a, const AnyTensor& b) {
  return apply(AfterNumber<RightShift>{{a}}, b);
}
AnyTensor bit_and(const AnyTensor& a, const AnyTensor& b) { return apply(BitAnd{}, a, b); }
AnyTensor bit_and(const AnyTensor& a, Number b) { return apply(BeforeNumber<BitAnd>{{b}}, a); }
AnyTensor bit_and(Number a, const AnyTensor& b) { return apply(AfterNumber<BitAnd>{{a}}, b); }
AnyTensor bit_or(const AnyTensor& a, const AnyTensor& b) { return apply(BitOr{}, a, b); }
AnyTensor bit_or(const AnyTensor& a, Number b) { return apply(BeforeNumber<BitOr>{{b}}, a); }
AnyTensor bit_or(Number a, const AnyTensor& b) { return apply(AfterNumber<BitOr>{{a}}, b); }
AnyTensor bit_xor(const AnyTensor& a, const AnyTensor& b) { return apply(BitXor{}, a, b); }
AnyTensor bit_xor(const AnyTensor& a, Number b) { return apply(BeforeNumber<BitXor>{{b}}, a); }
AnyTensor bit_xor(Number a, const AnyTensor& b) { return apply(AfterNumber<BitXor>{{a}}, b); }
AnyTensor bit_not(const AnyTensor& x) { return apply(BitNot{}, x); }

}  // namespace kiln
