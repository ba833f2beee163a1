#include "kiln/scalar/opcode_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using In = std::array<double, 3>;
using Args = std::array<Expr, 3>;

void no_gradient(Args&, const Expr&, const Expr&, Args&) {}
double leaf(const In&, DType) {
  throw Error("evaluate: takes functions of elements at their own places");
}

double truth(bool value) { return value ? 1.0 : 0.0; }

/// The nearest number that the dtype has. Of a NaN it is 0 in dtypes without NaN.
double cast_value(double x, DType to) {
  if (std::isnan(x) && (to == DType::i32 || to == DType::u32)) return 0;
  switch (to) {
    case DType::f32:
      return static_cast<double>(static_cast<float>(x));
    case DType::f16:
      return static_cast<double>(static_cast<float>(float16(static_cast<float>(x))));
    case DType::i32:
      return std::clamp(std::trunc(x), -2147483648.0, 2147483647.0);
    case DType::u32:
      return std::clamp(std::trunc(x), 0.0, 4294967295.0);
    case DType::boolean:
      return truth(x != 0);
  }
  return x;
}

/// Of two equal numbers, which may be zeros, the one with the sign or the one without.
double signed_one(const In& x, bool sign) { return std::signbit(x[0]) == sign ? x[0] : x[1]; }

bool is_finite_constant(const Expr& x, bool inverse = false) {
  const ExprGraph::Node& node = x.graph()->node(x.id());
  const auto value = static_cast<float>(node.value);
  return node.op == Opcode::constant && std::isfinite(inverse ? 1 / value : value);
}

/// The gradient times a slope. A gradient of 0 stays 0 even if the slope is infinite or NaN.
Expr times(const Expr& g, const Expr& slope) {
  return is_finite_constant(slope) ? g * slope : unless_zero(g, g * slope);
}

constexpr double log_of_2 = 0.69314718055994531;

/// The slope of asin: 1 / sqrt(1 - x^2), without the rounding of x^2 near 1.
Expr arc_slope(const Expr& x) { return rsqrt((1 - x) * (1 + x)); }

/// The greatest whole number not above a / b: a where that is none that the dtype has.
double floor_div_value(double a, double b) {
  if (b == 0 || (a == -2147483648.0 && b == -1)) return a;
  return std::floor(a / b);
}

bool is_shift(double count) { return count >= 0 && count <= 31; }

/// The bits of an integer: those above its dtype's are copies of its sign.
std::int64_t integer_bits(double x) {
  return std::abs(x) < 0x1p53 ? static_cast<std::int64_t>(x) : 0;
}

// For a NaN operand the gradient is passed on, as in other libraries: nothing says that the
// function is flat there.
constexpr auto unary_rows = std::to_array<OpcodeRow>({
    {Opcode::input, "input", 0, Domain::any, "", leaf, no_gradient},
    {Opcode::param, "param", 0, Domain::any, "", leaf, no_gradient},
    {Opcode::constant, "constant", 0, Domain::any, "", leaf, no_gradient},
    {Opcode::coordinate, "coordinate", 0, Domain::any, "", leaf, no_gradient},
    {Opcode::position, "position", 0, Domain::any, "", leaf, no_gradient},
    {Opcode::neg, "neg", 1, Domain::numeric, "(-$a)", [](const In& x, DType) { return -x[0]; },
     [](Args&, const Expr&, const Expr& g, Args& out) { out[0] = -g; }},
    {Opcode::abs, "abs", 1, Domain::numeric, "abs($a)",
     [](const In& x, DType) { return std::abs(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = select(in[0] == 0, 0, select(in[0] < 0, -g, g));
     }},
    {Opcode::exp, "exp", 1, Domain::floating, "exp($a)",
     [](const In& x, DType) { return std::exp(x[0]); },
     [](Args&, const Expr& self, const Expr& g, Args& out) { out[0] = times(g, self); }},
    {Opcode::log, "log", 1, Domain::floating, "log($a)",
     [](const In& x, DType) { return std::log(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = unless_zero(g, g / in[0]); }},
    {Opcode::sqrt, "sqrt", 1, Domain::floating, "sqrt($a)",
     [](const In& x, DType) { return std::sqrt(x[0]); },
     [](Args&, const Expr& self, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g * 0.5 / self);
     }},
    {Opcode::rsqrt, "rsqrt", 1, Domain::floating, "inverseSqrt($a)",
     [](const In& x, DType) { return 1 / std::sqrt(x[0]); },
     [](Args&, const Expr& self, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g * -0.5 * (self * self * self));
     }},
    {Opcode::tanh, "tanh", 1, Domain::floating, "kiln_tanh($a)",
     [](const In& x, DType) { return std::tanh(x[0]); },
     [](Args&, const Expr& self, const Expr& g, Args& out) { out[0] = times(g, 1 - self * self); }},
    {Opcode::sigmoid, "sigmoid", 1, Domain::floating, "kiln_sigmoid($a)",
     [](const In& x, DType) {
       return x[0] < 0 ? std::exp(x[0]) / (1 + std::exp(x[0])) : 1 / (1 + std::exp(-x[0]));
     },
     [](Args&, const Expr& self, const Expr& g, Args& out) {
       out[0] = times(g, self * (1 - self));
     }},
    {Opcode::softplus, "softplus", 1, Domain::floating, "kiln_softplus($a)",
     [](const In& x, DType) { return std::max(x[0], 0.0) + std::log1p(std::exp(-std::abs(x[0]))); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = times(g, sigmoid(in[0])); }},
    {Opcode::relu, "relu", 1, Domain::numeric, "kiln_relu_$t($a)",
     [](const In& x, DType) { return x[0] <= 0 ? 0.0 : x[0]; },
     [](Args&, const Expr& self, const Expr& g, Args& out) {
       out[0] = select(0 < self || is_nan(self), g, 0);
     }},
    {Opcode::erf, "erf", 1, Domain::floating, "kiln_erf($a)",
     [](const In& x, DType) { return std::erf(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = times(g, 1.1283791670955126 * exp(-(in[0] * in[0])));  // 2 / sqrt(pi)
     }},
    {Opcode::sin, "sin", 1, Domain::floating, "kiln_sin($a)",
     [](const In& x, DType) { return std::sin(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = times(g, cos(in[0])); }},
    {Opcode::cos, "cos", 1, Domain::floating, "kiln_cos($a)",
     [](const In& x, DType) { return std::cos(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = times(g, -sin(in[0])); }},
    {Opcode::tan, "tan", 1, Domain::floating, "kiln_tan($a)",
     [](const In& x, DType) { return std::tan(x[0]); },
     [](Args&, const Expr& self, const Expr& g, Args& out) { out[0] = times(g, 1 + self * self); }},
    {Opcode::asin, "asin", 1, Domain::floating, "kiln_asin($a)",
     [](const In& x, DType) { return std::asin(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g * arc_slope(in[0]));
     }},
    {Opcode::acos, "acos", 1, Domain::floating, "kiln_acos($a)",
     [](const In& x, DType) { return std::acos(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = unless_zero(g, -g * arc_slope(in[0]));
     }},
    {Opcode::atan, "atan", 1, Domain::floating, "kiln_atan($a)",
     [](const In& x, DType) { return std::atan(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g / (1 + in[0] * in[0]));
     }},
    {Opcode::sinh, "sinh", 1, Domain::floating, "kiln_sinh($a)",
     [](const In& x, DType) { return std::sinh(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = times(g, cosh(in[0])); }},
    {Opcode::cosh, "cosh", 1, Domain::floating, "kiln_cosh($a)",
     [](const In& x, DType) { return std::cosh(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = times(g, sinh(in[0])); }},
    {Opcode::exp2, "exp2", 1, Domain::floating, "exp2($a)",
     [](const In& x, DType) { return std::exp2(x[0]); },
     [](Args&, const Expr& self, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g * (self * log_of_2));
     }},
    {Opcode::log2, "log2", 1, Domain::floating, "log2($a)",
     [](const In& x, DType) { return std::log2(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g / (in[0] * log_of_2));
     }},
    {Opcode::log1p, "log1p", 1, Domain::floating, "kiln_log1p($a)",
     [](const In& x, DType) { return std::log1p(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = unless_zero(g, g / (1 + in[0]));
     }},
    {Opcode::expm1, "expm1", 1, Domain::floating, "kiln_expm1($a)",
     [](const In& x, DType) { return std::expm1(x[0]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) { out[0] = times(g, exp(in[0])); }},
    // These are flat wherever they have a slope.
    {Opcode::floor, "floor", 1, Domain::floating, "kiln_with_sign(floor($a), $a)",
     [](const In& x, DType) { return std::floor(x[0]); }, no_gradient},
    {Opcode::ceil, "ceil", 1, Domain::floating, "kiln_with_sign(ceil($a), $a)",
     [](const In& x, DType) { return std::ceil(x[0]); }, no_gradient},
    {Opcode::round, "round", 1, Domain::floating, "kiln_with_sign(round($a), $a)",
     [](const In& x, DType) { return std::nearbyint(x[0]); }, no_gradient},
    {Opcode::trunc, "trunc", 1, Domain::floating, "kiln_with_sign(trunc($a), $a)",
     [](const In& x, DType) { return std::trunc(x[0]); }, no_gradient},
    {Opcode::sign, "sign", 1, Domain::numeric, "kiln_sign_$t($a)",
     [](const In& x,
        DType) { return x[0] == 0          ? 0.0
                        : std::isnan(x[0]) ? x[0]
                                           : std::copysign(1.0, x[0]); },
     no_gradient},
    {Opcode::is_nan, "is_nan", 1, Domain::floating, "kiln_is_nan($a)",
     [](const In& x, DType) { return truth(std::isnan(x[0])); }, no_gradient},
    {Opcode::is_inf, "is_inf", 1, Domain::floating, "kiln_is_inf($a)",
     [](const In& x, DType) { return truth(std::isinf(x[0])); }, no_gradient},
    {Opcode::bit_not, "bit_not", 1, Domain::integer, "(~$a)",
     [](const In& x, DType) { return -x[0] - 1; }, no_gradient},
    {Opcode::logical_not, "logical_not", 1, Domain::boolean, "(!$a)",
     [](const In& x, DType) { return truth(x[0] == 0); }, no_gradient},
    {Opcode::cast, "cast", 1, Domain::any, "",
     [](const In& x, DType to) { return cast_value(x[0], to); },
     // The gradient arrives in the result's dtype and leaves in the operand's. A body does not know
     // that one, so cast_back stands for it.
     [](Args&, const Expr&, const Expr& g, Args& out) {
       ExprGraph& graph = *g.graph();
       out[0] = graph.expr(graph.intern({.op = Opcode::cast_back, .args = {g.id(), -1, -1}}));
     }},
    {Opcode::cast_back, "cast_back", 1, Domain::floating, "$a",
     [](const In& x, DType) { return x[0]; },
     [](Args&, const Expr&, const Expr& g, Args& out) { out[0] = g; }},
});

constexpr auto other_rows = std::to_array<OpcodeRow>({
    {Opcode::add, "add", 2, Domain::numeric, "($a + $b)",
     [](const In& x, DType) { return x[0] + x[1]; },
     [](Args&, const Expr&, const Expr& g, Args& out) { out[0] = out[1] = g; }},
    {Opcode::sub, "sub", 2, Domain::numeric, "($a - $b)",
     [](const In& x, DType) { return x[0] - x[1]; },
     [](Args&, const Expr&, const Expr& g, Args& out) {
       out[0] = g;
       out[1] = -g;
     }},
    {Opcode::mul, "mul", 2, Domain::numeric, "($a * $b)",
     [](const In& x, DType) { return x[0] * x[1]; },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[0] = times(g, in[1]);
       out[1] = times(g, in[0]);
     }},
    {Opcode::div, "div", 2, Domain::numeric, "($a / $b)",
     [](const In& x, DType) { return x[0] / x[1]; },
     [](Args& in, const Expr& self, const Expr& g, Args& out) {
       const Expr share = g / in[1];
       out[0] = is_finite_constant(in[1], true) ? share : unless_zero(g, share);
       out[1] = unless_zero(g, -(share * self));
     }},
    {Opcode::pow, "pow", 2, Domain::floating, "kiln_pow($a, $b)",
     [](const In& x, DType) { return std::pow(x[0], x[1]); },
     [](Args& in, const Expr& self, const Expr& g, Args& out) {
       out[0] = select(in[1] == 0, 0, times(g, in[1] * pow(in[0], in[1] - 1)));
       out[1] = select(in[0] == 0 && 0 <= in[1], 0, times(g, self * log(in[0])));
     }},
    {Opcode::atan2, "atan2", 2, Domain::floating, "kiln_atan2($a, $b)",
     [](const In& x, DType) { return std::atan2(x[0], x[1]); },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       // The slopes are x / r^2 and -y / r^2. No square may leave the range of f32.
       const Expr longer = max(abs(in[0]), abs(in[1]));
       const Expr y = in[0] / longer;
       const Expr x = in[1] / longer;
       const Expr square = x * x + y * y;
       const auto slope = [&](const Expr& side) {
         return select(is_inf(longer), 0, side / square / longer);
       };
       out[0] = unless_zero(g, g * slope(x));
       out[1] = unless_zero(g, -g * slope(y));
     }},
    // What holds for integers: sums, products, bits that are shifted out and ~x do not wrap here.
    {Opcode::floor_div, "floor_div", 2, Domain::integer, "kiln_floor_div_$t($a, $b)",
     [](const In& x, DType) { return floor_div_value(x[0], x[1]); }, no_gradient},
    {Opcode::mod, "mod", 2, Domain::integer, "kiln_mod_$t($a, $b)",
     [](const In& x, DType) {
       return x[1] == 0 || x[1] == -1 ? 0.0 : x[0] - floor_div_value(x[0], x[1]) * x[1];
     },
     no_gradient},
    {Opcode::shift_left, "shift_left", 2, Domain::integer, "kiln_shift_left_$t($a, $b)",
     [](const In& x, DType) { return is_shift(x[1]) ? x[0] * std::exp2(x[1]) : 0.0; }, no_gradient},
    {Opcode::shift_right, "shift_right", 2, Domain::integer, "kiln_shift_right_$t($a, $b)",
     [](const In& x, DType) { return std::floor(x[0] / std::exp2(is_shift(x[1]) ? x[1] : 32)); },
     no_gradient},
    {Opcode::bit_and, "bit_and", 2, Domain::integer, "($a & $b)",
     [](const In& x,
        DType) { return static_cast<double>(integer_bits(x[0]) & integer_bits(x[1])); },
     no_gradient},
    {Opcode::bit_or, "bit_or", 2, Domain::integer, "($a | $b)",
     [](const In& x,
        DType) { return static_cast<double>(integer_bits(x[0]) | integer_bits(x[1])); },
     no_gradient},
    {Opcode::bit_xor, "bit_xor", 2, Domain::integer, "($a ^ $b)",
     [](const In& x,
        DType) { return static_cast<double>(integer_bits(x[0]) ^ integer_bits(x[1])); },
     no_gradient},
    {Opcode::min, "min", 2, Domain::numeric, "kiln_min_$t($a, $b)",
     [](const In& x, DType) {
       if (x[0] == x[1]) return signed_one(x, true);
       return x[0] < x[1] || std::isnan(x[0]) ? x[0] : x[1];
     },
     [](Args& in, const Expr&, const Expr& g, Args& out) {  // where both are equal, each gets half
       const Expr shared = select(in[0] == in[1], g * 0.5, g);
       out[0] = select(in[1] < in[0], 0, shared);
       out[1] = select(in[0] < in[1], 0, shared);
     }},
    {Opcode::max, "max", 2, Domain::numeric, "kiln_max_$t($a, $b)",
     [](const In& x, DType) {
       if (x[0] == x[1]) return signed_one(x, false);
       return x[0] > x[1] || std::isnan(x[0]) ? x[0] : x[1];
     },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       const Expr shared = select(in[0] == in[1], g * 0.5, g);
       out[0] = select(in[0] < in[1], 0, shared);
       out[1] = select(in[1] < in[0], 0, shared);
     }},
    {Opcode::unless_zero, "unless_zero", 2, Domain::floating, "kiln_unless_zero($a, $b)",
     [](const In& x, DType) { return x[0] == 0 ? 0.0 : x[1]; },
     // Where the gate is 0, the operand is meant to be 0, too. So the gradient is the operand's.
     [](Args&, const Expr&, const Expr& g, Args& out) { out[1] = g; }},
    {Opcode::equal, "equal", 2, Domain::any, "($a == $b)",
     [](const In& x, DType) { return truth(x[0] == x[1]); }, no_gradient},
    {Opcode::less, "less", 2, Domain::numeric, "($a < $b)",
     [](const In& x, DType) { return truth(x[0] < x[1]); }, no_gradient},
    {Opcode::less_equal, "less_equal", 2, Domain::numeric, "($a <= $b)",
     [](const In& x, DType) { return truth(x[0] <= x[1]); }, no_gradient},
    {Opcode::logical_and, "logical_and", 2, Domain::boolean, "($a && $b)",
     [](const In& x, DType) { return truth(x[0] != 0 && x[1] != 0); }, no_gradient},
    {Opcode::logical_or, "logical_or", 2, Domain::boolean, "($a || $b)",
     [](const In& x, DType) { return truth(x[0] != 0 || x[1] != 0); }, no_gradient},
    {Opcode::select, "select", 3, Domain::any, "select($c, $b, $a)",
     [](const In& x, DType) { return x[0] != 0 ? x[1] : x[2]; },
     [](Args& in, const Expr&, const Expr& g, Args& out) {
       out[1] = select(in[0], g, 0);
       out[2] = select(in[0], 0, g);
     }},
    {Opcode::index, "index", 2, Domain::integer, "", leaf, no_gradient},
    {Opcode::element, "element", 2, Domain::any, "", leaf, no_gradient},
    {Opcode::load, "load", 2, Domain::any, "", leaf, no_gradient},
});

constexpr const OpcodeRow& row_at(std::size_t i) {
  return i < unary_rows.size() ? unary_rows[i] : other_rows[i - unary_rows.size()];
}

constexpr bool in_order() {
  for (std::size_t i = 0; i < unary_rows.size() + other_rows.size(); ++i) {
    if (static_cast<std::size_t>(row_at(i).op) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the tables' rows stand in the order of the enumeration");

}  // namespace

const OpcodeRow& row(Opcode op) { return row_at(static_cast<std::size_t>(op)); }

std::span<const std::int32_t> operands(const ExprGraph::Node& node) {
  auto count = static_cast<std::size_t>(row(node.op).arity);
  while (count > 0 && node.args[count - 1] < 0) --count;  // the last index has no next one
  return std::span(node.args).first(count);
}

}  // namespace kiln
