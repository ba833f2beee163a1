#include "kiln/scalar/wgsl/wgsl.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kiln/scalar/body_of_test.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Names = std::set<std::string>;

WgslBody print(const Body& body, const std::vector<DType>& inputs, DType fallback = DType::f32) {
  const std::vector<std::string> names{"x", "y", "z"};
  const BodyTypes types = infer("op", body, inputs, fallback);
  return print_wgsl("op", body, types, names, "params.p", "t");
}

/// The only result of a function of one input, with its statements before it.
template <class F>
std::string text_of(F f, DType input = DType::f32) {
  const WgslBody out = print(*body_of(f), {input});
  return out.statements + out.results.at(0);
}

TEST(Wgsl, ABodyIsOneStatementAnOperation) {
  const WgslBody out = print(*body_of([](Expr x) { return x * sigmoid(x); }), {DType::f32});
  EXPECT_EQ(out.statements, "  let t1 = kiln_sigmoid(x);\n  let t2 = (x * t1);\n");
  EXPECT_EQ(out.results, std::vector<std::string>{"t2"});
  EXPECT_EQ(out.helpers, Names{"kiln_sigmoid"});
}

TEST(Wgsl, SharedSubexpressionsArePrintedOnce) {
  EXPECT_EQ(text_of([](Expr x) { return tanh(x) * tanh(x); }),
            "  let t1 = kiln_tanh(x);\n  let t2 = (t1 * t1);\nt2");
}

/// Whether an operand of the last operation is hidden from compilers.
template <class F>
bool hidden(F f, DType input = DType::f32) {
  const auto body = body_of(f);
  const std::vector<DType> inputs(static_cast<std::size_t>(body->inputs), input);
  const WgslBody out = print(*body, inputs);
  const bool called = out.statements.find("kiln_hide(") != std::string::npos;
  EXPECT_EQ(out.helpers.contains("kiln_hide"), called);
  const std::string last = out.statements.substr(out.statements.rfind("  let "));
  EXPECT_EQ(called, last.find("kiln_hide(") != std::string::npos) << out.statements;
  return called;
}

TEST(Wgsl, WhatCancelsOnPaperIsHidden) {
  EXPECT_EQ(text_of([](Expr x) { return x - x; }), "  let t1 = (x - kiln_hide(x));\nt1");
  EXPECT_EQ(text_of([](Expr x) { return x * 0; }), "  let t2 = (x * kiln_hide(0f));\nt2");
  EXPECT_EQ(text_of([](Expr x) { return x == x; }), "  let t1 = (x == kiln_hide(x));\nt1");
  EXPECT_EQ(text_of([](Expr x) { return log(exp(x)); }),
            "  let t1 = exp(x);\n  let t2 = log(kiln_hide(t1));\nt2");
  EXPECT_EQ(text_of([](Expr x) { return x - x; }, DType::i32), "  let t1 = (x - x);\nt1");
}

TEST(Wgsl, SumsWithACommonTermAreHidden) {
  EXPECT_TRUE(hidden([](Expr x) { return x + -x; }));
  EXPECT_TRUE(hidden([](Expr x, Expr a, Expr b) { return (x + a) - (x + b); }));
  EXPECT_TRUE(hidden([](Expr x, Expr a, Expr b) { return (a - x) + (b + x); }));
  EXPECT_TRUE(hidden([](Expr x, Expr a) { return a - (x + (1 - a)); }));
  EXPECT_TRUE(hidden([](Expr x, Expr a, Expr b) { return x * a - x * b; }));
  EXPECT_TRUE(hidden([](Expr x, Expr a) { return x / a + x; }));
  EXPECT_TRUE(hidden([](Expr x) { return (x + 1e8) - 1e8; }));
  EXPECT_TRUE(hidden([](Expr x, Expr a) { return x + a < x; }));
  EXPECT_TRUE(hidden([](Expr x, Expr a) { return x <= a - x; }));
  EXPECT_TRUE(hidden([](Expr x, Expr a) { return log(x) - log(a); }));
  EXPECT_TRUE(hidden([](Expr x) { return x + 0; }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return (x + y) - x; }, DType::f16));
}

TEST(Wgsl, ProductsWithACommonFactorAreHidden) {
  EXPECT_TRUE(hidden([](Expr x) { return x / x; }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return x * y / y; }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return x / y * y; }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return y / (x * y); }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return (x + y) / (x + y); }));
  EXPECT_TRUE(hidden([](Expr x) { return sqrt(x) * sqrt(x); }));
  EXPECT_TRUE(hidden([](Expr x) { return x / sqrt(x); }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return sqrt(x) * rsqrt(y); }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return exp(x) * exp(y); }));
  EXPECT_TRUE(hidden([](Expr x) { return x * 1e30 * 1e-30; }));
  EXPECT_TRUE(hidden([](Expr x) { return 0 / x; }));
}

TEST(Wgsl, FunctionsOfTheirInversesAreHidden) {
  EXPECT_TRUE(hidden([](Expr x) { return log(exp(x)); }));
  EXPECT_TRUE(hidden([](Expr x) { return exp(log(x)); }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return exp(y * log(x)); }));
  EXPECT_TRUE(hidden([](Expr x) { return log2(exp2(x)); }));
  EXPECT_TRUE(hidden([](Expr x) { return expm1(log1p(x)); }));
  EXPECT_TRUE(hidden([](Expr x) { return sqrt(exp(x)); }));
  EXPECT_TRUE(hidden([](Expr x) { return sqrt(x * x); }));
  EXPECT_TRUE(hidden([](Expr x, Expr y) { return rsqrt(-(x * y * x)); }));
}

TEST(Wgsl, WhatHasNothingInCommonIsPrintedAsItIs) {
  EXPECT_FALSE(hidden([](Expr x, Expr y, Expr z) { return x * y + z; }));
  EXPECT_FALSE(hidden([](Expr x, Expr y, Expr z) { return (x - y) / z; }));
  EXPECT_FALSE(hidden([](Expr x) { return x * x * x; }));
  EXPECT_FALSE(hidden([](Expr x) { return x * sigmoid(x); }));
  EXPECT_FALSE(hidden([](Expr x) { return ((0.5 * x + 2) * x + 3) * x + 4; }));
  EXPECT_FALSE(hidden([](Expr x, Expr y) { return sqrt(x * x + y * y); }));
  EXPECT_FALSE(hidden([](Expr x, Expr y) { return max(x, y) - min(x, y); }));
  EXPECT_FALSE(hidden([](Expr x, Expr y) { return select(x < y, x + 1, y + 2); }));
  EXPECT_FALSE(hidden([](Expr x) { return 1 / (1 + exp(-x)); }));
  EXPECT_FALSE(hidden([](Expr x, Expr y) { return x + y - 2 * cast(x < y, DType::f32); }));
}

TEST(Wgsl, ALongChainIsLookedAtInNoTimeToSpeakOf) {
  const auto body = body_of([](Expr x, Expr y) {
    Expr sum = x;
    for (int i = 0; i < 3000; ++i) sum = sum + y;
    return sum;
  });
  const WgslBody out = print(*body, {DType::f32, DType::f32});
  EXPECT_TRUE(out.helpers.contains("kiln_hide"));
}

TEST(Wgsl, EveryRootHasItsExpression) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const auto body = make_body(graph, 1, 0, std::array{x.id(), (-x).id(), graph.place(0.25)});
  const WgslBody out = print(*body, {DType::f32});
  EXPECT_EQ(out.statements, "  let t1 = (-x);\n");
  EXPECT_EQ(out.results, (std::vector<std::string>{"x", "t1", "0.25f"}));
}

TEST(Wgsl, ASelectPutsTheConditionLast) {
  EXPECT_EQ(text_of([](Expr x) { return select(x < 0, -1, x); }),
            "  let t2 = (x < 0f);\n  let t4 = select(x, (-1f), t2);\nt4");
}

TEST(Wgsl, HelpersAreSpelledForTheDtypeTheyTake) {
  const auto body = body_of([](Expr x, Expr y) { return relu(max(x, y)); });
  const WgslBody ints = print(*body, {DType::i32, DType::i32});
  EXPECT_EQ(ints.statements, "  let t2 = kiln_max_i32(x, y);\n  let t3 = kiln_relu_i32(t2);\n");
  EXPECT_EQ(ints.helpers, (Names{"kiln_max_i32", "kiln_relu_i32"}));
  // f16 is computed in f32.
  EXPECT_EQ(print(*body, {DType::f16, DType::f16}).helpers,
            (Names{"kiln_max_f32", "kiln_relu_f32"}));
}

TEST(Wgsl, BodiesWithAnglesDeclareTheHiddenNumber) {
  const WgslBody out = print(*body_of([](Expr x) { return sin(x); }), {DType::f16});
  EXPECT_EQ(out.statements, "  let t1 = kiln_sin(x);\n");
  EXPECT_EQ(out.helpers, (Names{"kiln_hide", "kiln_sin"}));
}

TEST(Wgsl, IntegersHaveFunctionsOfTheirDtype) {
  EXPECT_EQ(text_of([](Expr x) { return mod(x, 3) << 40; }, DType::i32),
            "  let t2 = kiln_mod_i32(x, 3i);\n  let t4 = kiln_shift_left_i32(t2, 40i);\nt4");
  EXPECT_EQ(text_of([](Expr x) { return ~(x & 7) | 1; }, DType::u32),
            "  let t2 = (x & 7u);\n  let t3 = (~t2);\n  let t5 = (t3 | 1u);\nt5");
}

TEST(Wgsl, AnIntegerIsNotDividedByALiteralZero) {
  EXPECT_EQ(text_of([](Expr x) { return x / 0; }, DType::i32), "  let t2 = x;\nt2");
  EXPECT_EQ(text_of([](Expr x) { return x / 0; }), "  let t2 = (x / kiln_hide(0f));\nt2");
}

TEST(Wgsl, OperationsOverLiteralsNameTheirHelpersToo) {
  const WgslBody out =
      print(*body_of([](Expr x) { return x + tanh(select(x < 0, 1, 2)); }), {DType::f32});
  EXPECT_EQ(out.helpers, Names{"kiln_tanh"});
  EXPECT_EQ(out.statements,
            "  let t2 = (x < 0f);\n  let t7 = (x + kiln_tanh(select(2f, 1f, t2)));\n");
}

TEST(Wgsl, ParamsAreNamedBySlot) {
  const Param a{0};
  const Param b{0};
  ExprGraph graph({&a, &b});
  const Expr x = graph.input(0);
  const auto body = make_body(graph, 1, 2, std::array{(x * b + a).id()});
  const WgslBody out = print(*body, {DType::f32});
  EXPECT_EQ(out.statements, "  let t2 = (x * params.p1);\n  let t4 = (t2 + params.p0);\n");
}

TEST(Wgsl, FloatLiteralsKeepEveryDigitOfSinglePrecision) {
  const auto plus = [](Expr literal) {
    ExprGraph graph;
    const Expr sum = graph.input(0) + literal;
    const WgslBody out = print(*make_body(graph, 1, 0, std::array{sum.id()}), {DType::f32});
    return out.statements;
  };
  EXPECT_EQ(plus(1e30), "  let t2 = (x + 1e+30f);\n");
  EXPECT_EQ(plus(-0.5), "  let t2 = (x + (-0.5f));\n");
  EXPECT_EQ(plus(3), "  let t2 = (x + 3f);\n");
  EXPECT_EQ(plus(0.1), "  let t2 = (x + 0.1f);\n");
  EXPECT_EQ(plus(16777217), "  let t2 = (x + 16777216f);\n");
  EXPECT_EQ(plus(-1e-7), "  let t2 = (x + (-1e-07f));\n");
  EXPECT_EQ(plus(0.30000001192092896), "  let t2 = (x + 0.3f);\n");
}

TEST(Wgsl, ANegativeLiteralIsNeverGluedToAMinus) {
  const auto negated = [](double value, DType dtype) {
    ExprGraph graph;
    const Expr x = graph.input(0);
    const Expr y = -graph.expr(graph.intern({.op = Opcode::constant, .value = value}));
    return print(*make_body(graph, 1, 0, std::array{(x * y).id()}), {dtype}).statements;
  };
  EXPECT_EQ(negated(-0.5, DType::f32), "  let t3 = (x * (-(-0.5f)));\n");
  EXPECT_EQ(negated(-0.0, DType::f32), "  let t3 = (x * (-(-0f)));\n");
  EXPECT_EQ(negated(-5, DType::i32), "  let t3 = (x * (-(-5i)));\n");
}

TEST(Wgsl, IntegerAndBoolLiteralsTakeTheDtypeOfTheirUser) {
  EXPECT_EQ(text_of([](Expr x) { return x + 7; }, DType::i32), "  let t2 = (x + 7i);\nt2");
  EXPECT_EQ(text_of([](Expr x) { return x + 4294967295.0; }, DType::u32),
            "  let t2 = (x + 4294967295u);\nt2");
  EXPECT_EQ(text_of([](Expr x) { return x * -2; }, DType::i32), "  let t2 = (x * (-2i));\nt2");
  EXPECT_EQ(text_of([](Expr x) { return x == 1; }, DType::boolean), "  let t2 = (x == true);\nt2");
}

// 2147483648i does not exist, so -2147483648i is no literal of WGSL.
TEST(Wgsl, TheLeastIntegerIsSpelledAsADifference) {
  EXPECT_EQ(text_of([](Expr x) { return x + -2147483648.0; }, DType::i32),
            "  let t2 = (x + (-2147483647i - 1i));\nt2");
}

TEST(Wgsl, OneLiteralMayBeUsedAtTwoDtypes) {
  const auto body = body_of([](Expr x, Expr y) {
    const Expr twice = x * 2;
    return twice + cast(y * 2, DType::f32);
  });
  EXPECT_EQ(print(*body, {DType::f32, DType::u32}).statements,
            "  let t3 = (x * 2f);\n  let t4 = (y * 2u);\n  let t5 = f32(t4);\n"
            "  let t6 = (t3 + t5);\n");
}

TEST(Wgsl, LiteralsThatItCannotSpellAreRefused) {
  const auto error = [](auto f) -> std::string {
    try {
      (void)text_of(f);
    } catch (const KernelError& e) {
      return e.what();
    }
    return "no KernelError";
  };
  EXPECT_EQ(error([](Expr x) { return x + std::numeric_limits<double>::infinity(); }),
            "op: the literal inf cannot be written in WGSL; pass it as a Param");
  EXPECT_EQ(error([](Expr x) { return x + std::numeric_limits<double>::quiet_NaN(); }),
            "op: the literal nan cannot be written in WGSL; pass it as a Param");
  EXPECT_EQ(error([](Expr x) { return x + 1e39; }),
            "op: the literal 1e+39 cannot be written in WGSL; pass it as a Param");
}

TEST(Wgsl, CastsAreSpelledFromTheComputedType) {
  const auto spelled = [](DType from, DType to) {
    ExprGraph graph;
    const Expr y = cast(graph.input(0), to);
    return print(*make_body(graph, 1, 0, std::array{y.id()}), {from}).statements;
  };
  EXPECT_EQ(spelled(DType::f32, DType::f16), "  let t1 = kiln_round_f16(x);\n");
  EXPECT_EQ(spelled(DType::boolean, DType::f16), "  let t1 = kiln_round_f16(f32(x));\n");
  EXPECT_EQ(spelled(DType::f16, DType::f32), "  let t1 = f32(x);\n");
  EXPECT_EQ(spelled(DType::f32, DType::i32), "  let t1 = kiln_i32(x);\n");
  EXPECT_EQ(spelled(DType::f16, DType::u32), "  let t1 = kiln_u32(x);\n");
  EXPECT_EQ(spelled(DType::i32, DType::u32), "  let t1 = u32(max(x, 0i));\n");
  EXPECT_EQ(spelled(DType::u32, DType::i32), "  let t1 = i32(min(x, 2147483647u));\n");
  EXPECT_EQ(spelled(DType::boolean, DType::u32), "  let t1 = u32(x);\n");
  EXPECT_EQ(spelled(DType::f16, DType::boolean), "  let t1 = !(x == f32(0));\n");
  EXPECT_EQ(spelled(DType::u32, DType::boolean), "  let t1 = !(x == u32(0));\n");
  EXPECT_EQ(spelled(DType::boolean, DType::boolean), "  let t1 = x;\n");
}

TEST(Wgsl, TheAdjointOfReluReadsTheResult) {
  const auto back = adjoint(*body_of([](Expr x) { return relu(x); }));
  const WgslBody out = print(*back, {DType::f32, DType::f32, DType::f32});
  EXPECT_EQ(out.statements + out.results.at(0),
            "  let t3 = (0f < y);\n  let t4 = kiln_is_nan(y);\n  let t5 = (t3 || t4);\n"
            "  let t6 = select(0f, z, t5);\nt6");
  EXPECT_EQ(out.helpers, Names{"kiln_is_nan"});
}

TEST(Wgsl, AGradientThatCameThroughACastIsUsedAsItIs) {
  const auto back = adjoint(*body_of([](Expr x) { return cast(exp(x), DType::f16); }));
  const WgslBody out = print(*back, {DType::f32, DType::f16, DType::f16});
  EXPECT_EQ(out.statements,
            "  let t1 = exp(x);\n  let t4 = (z * t1);\n"
            "  let t5 = kiln_unless_zero(z, t4);\n");
}

TEST(Wgsl, StorageTypesDifferFromComputedOnes) {
  EXPECT_EQ(wgsl_storage_type(DType::f16), "f16");
  EXPECT_EQ(wgsl_compute_type(DType::f16), "f32");
  EXPECT_EQ(wgsl_storage_type(DType::boolean), "u32");
  EXPECT_EQ(wgsl_compute_type(DType::boolean), "bool");
  for (const DType same : {DType::f32, DType::i32, DType::u32}) {
    EXPECT_EQ(wgsl_storage_type(same), to_string(same));
    EXPECT_EQ(wgsl_compute_type(same), to_string(same));
  }
}

TEST(Wgsl, LoadsWidenF16AndTestBools) {
  EXPECT_EQ(wgsl_load(DType::f32, "a[i]"), "a[i]");
  EXPECT_EQ(wgsl_load(DType::i32, "a[i]"), "a[i]");
  EXPECT_EQ(wgsl_load(DType::f16, "a[i]"), "f32(a[i])");
  EXPECT_EQ(wgsl_load(DType::boolean, "a[i]"), "(a[i] != 0u)");
}

TEST(Wgsl, StoresRoundToF16AndSpellBoolsAsWords) {
  EXPECT_EQ(wgsl_store(DType::f32, DType::f32, "v"), "v");
  EXPECT_EQ(wgsl_store(DType::f16, DType::f16, "v"), "f16(v)");
  EXPECT_EQ(wgsl_store(DType::boolean, DType::boolean, "v"), "u32(v)");
  EXPECT_EQ(wgsl_store(DType::f32, DType::f16, "v"), "f16(v)");
  EXPECT_EQ(wgsl_store(DType::f16, DType::f32, "v"), "f32(v)");
  EXPECT_EQ(wgsl_store(DType::f32, DType::i32, "v"), "i32(v)");
  EXPECT_EQ(wgsl_store(DType::boolean, DType::f32, "v"), "f32(v)");
  EXPECT_EQ(wgsl_store(DType::f32, DType::boolean, "v"), "u32(!(v == f32(0)))");
  EXPECT_EQ(wgsl_store(DType::i32, DType::boolean, "v"), "u32(!(v == i32(0)))");
}

}  // namespace
}  // namespace kiln
