#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kiln/scalar/body_of_test.hpp"
#include "kiln/scalar/opcode_table.hpp"

namespace kiln {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

const std::vector<double> samples{-inf,   -1e30, -1000, -88.8, -2.5, -1,  -0.3,
                                  -1e-20, -0.0,  0,     1e-20, 0.25, 0.5, 1,
                                  1.75,   2,     13.24, 90,    1e30, inf, nan};

/// Equal bit for bit, except that a NaN is as good as another.
void expect_same(double actual, double expected, double x, double y = 0) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << "at " << x << ", " << y << ": " << actual;
  } else {
    EXPECT_EQ(actual, expected) << "at " << x << ", " << y;
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << "at " << x << ", " << y;
  }
}

template <class F>
void expect_unary(F body, const std::function<double(double)>& expected) {
  const auto compiled = body_of(body);
  for (const double x : samples) expect_same(evaluate(*compiled, 0, std::array{x}), expected(x), x);
}

template <class F>
void expect_binary(F body, const std::function<double(double, double)>& expected) {
  const auto compiled = body_of(body);
  for (const double x : samples) {
    for (const double y : samples) {
      expect_same(evaluate(*compiled, 0, std::array{x, y}), expected(x, y), x, y);
    }
  }
}

double value(const BodyPtr& body, double x) { return evaluate(*body, 0, std::array{x}); }

TEST(Evaluate, UnaryFunctionsAreThoseOfTheStandardLibrary) {
  expect_unary([](Expr x) { return -x; }, [](double x) { return -x; });
  expect_unary([](Expr x) { return abs(x); }, [](double x) { return std::fabs(x); });
  expect_unary([](Expr x) { return exp(x); }, [](double x) { return std::exp(x); });
  expect_unary([](Expr x) { return log(x); }, [](double x) { return std::log(x); });
  expect_unary([](Expr x) { return sqrt(x); }, [](double x) { return std::sqrt(x); });
  expect_unary([](Expr x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); });
  expect_unary([](Expr x) { return tanh(x); }, [](double x) { return std::tanh(x); });
  expect_unary([](Expr x) { return erf(x); }, [](double x) { return std::erf(x); });
  expect_unary([](Expr x) { return sin(x); }, [](double x) { return std::sin(x); });
  expect_unary([](Expr x) { return cos(x); }, [](double x) { return std::cos(x); });
  expect_unary([](Expr x) { return tan(x); }, [](double x) { return std::tan(x); });
  expect_unary([](Expr x) { return asin(x); }, [](double x) { return std::asin(x); });
  expect_unary([](Expr x) { return acos(x); }, [](double x) { return std::acos(x); });
  expect_unary([](Expr x) { return atan(x); }, [](double x) { return std::atan(x); });
  expect_unary([](Expr x) { return sinh(x); }, [](double x) { return std::sinh(x); });
  expect_unary([](Expr x) { return cosh(x); }, [](double x) { return std::cosh(x); });
  expect_unary([](Expr x) { return exp2(x); }, [](double x) { return std::exp2(x); });
  expect_unary([](Expr x) { return log2(x); }, [](double x) { return std::log2(x); });
  expect_unary([](Expr x) { return log1p(x); }, [](double x) { return std::log1p(x); });
  expect_unary([](Expr x) { return expm1(x); }, [](double x) { return std::expm1(x); });
  expect_unary([](Expr x) { return floor(x); }, [](double x) { return std::floor(x); });
  expect_unary([](Expr x) { return ceil(x); }, [](double x) { return std::ceil(x); });
  expect_unary([](Expr x) { return trunc(x); }, [](double x) { return std::trunc(x); });
}

TEST(Evaluate, RoundTakesTheEvenNeighbour) {
  const auto body = body_of([](Expr x) { return round(x); });
  const std::array in{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.51, 1e300, inf};
  const std::array out{-2.0, -2.0, -0.0, 0.0, 2.0, 2.0, 3.0, 1e300, inf};
  for (std::size_t i = 0; i < in.size(); ++i) expect_same(value(body, in[i]), out[i], in[i]);
  EXPECT_TRUE(std::isnan(value(body, nan)));
}

TEST(Evaluate, SignIsZeroForZerosAndNaNForNaN) {
  expect_unary([](Expr x) { return sign(x); },
               [](double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); });
}

TEST(Evaluate, InverseHyperbolicFunctionsAreThoseOfTheStandardLibrary) {
  const auto asinh_body = body_of([](Expr x) { return asinh(x); });
  const auto acosh_body = body_of([](Expr x) { return acosh(x); });
  const auto atanh_body = body_of([](Expr x) { return atanh(x); });
  const auto expect_close = [](double actual, double expected, double x) {
    if (std::isfinite(expected)) {
      EXPECT_NEAR(actual, expected, 2e-9 * std::abs(expected)) << x;
      EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << x;
    } else {
      expect_same(actual, expected, x);
    }
  };
  std::vector<double> points = samples;
  for (const double x : {1e-9, 1e-5, 1e-4, 1e-3, 0.1, 0.9, 0.999, 1.001, 9999.0, 1e4, -1e10})
    points.insert(points.end(), {x, -x});
  for (const double x : points) {
    expect_close(value(asinh_body, x), std::asinh(x), x);
    expect_close(value(acosh_body, x), std::acosh(x), x);
    expect_close(value(atanh_body, x), std::atanh(x), x);
  }
}

TEST(Evaluate, IntegersDivideRoundedDown) {
  const auto div = body_of([](Expr x, Expr y) { return floor_div(x, y); });
  const auto rest = body_of([](Expr x, Expr y) { return mod(x, y); });
  for (const int a : {-7, -6, -1, 0, 1, 6, 7}) {
    for (const int b : {-3, -1, 1, 3}) {
      const std::array in{static_cast<double>(a), static_cast<double>(b)};
      const int down = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      EXPECT_EQ(evaluate(*div, 0, in), down) << a << " " << b;
      EXPECT_EQ(evaluate(*rest, 0, in), a - down * b) << a << " " << b;
    }
    const std::array by_zero{static_cast<double>(a), 0.0};
    EXPECT_EQ(evaluate(*div, 0, by_zero), a);
    EXPECT_EQ(evaluate(*rest, 0, by_zero), 0);
  }
  EXPECT_EQ(evaluate(*div, 0, std::array{-2147483648.0, -1.0}), -2147483648.0);
  EXPECT_EQ(evaluate(*div, 0, std::array{4294967295.0, 2.0}), 2147483647.0);
}

TEST(Evaluate, IntegersHaveBits) {
  const auto of = [](auto f, double a, double b) {
    return evaluate(*body_of(f), 0, std::array{a, b});
  };
  EXPECT_EQ(of([](Expr x, Expr y) { return x & y; }, -4, 6), 4);
  EXPECT_EQ(of([](Expr x, Expr y) { return x | y; }, -4, 6), -2);
  EXPECT_EQ(of([](Expr x, Expr y) { return x ^ y; }, 4294967295.0, 5), 4294967290.0);
  EXPECT_EQ(of([](Expr x, Expr y) { return x << y; }, 3, 4), 48);
  EXPECT_EQ(of([](Expr x, Expr y) { return x << y; }, 3, 32), 0);
  EXPECT_EQ(of([](Expr x, Expr y) { return x >> y; }, -3, 1), -2);
  EXPECT_EQ(of([](Expr x, Expr y) { return x >> y; }, -3, -1), -1);
  EXPECT_EQ(of([](Expr x, Expr y) { return x >> y; }, 3, 77), 0);
  EXPECT_EQ(value(body_of([](Expr x) { return ~x; }), 5), -6);
}

TEST(Evaluate, ArithmeticIsThatOfDoubles) {
  expect_binary([](Expr x, Expr y) { return x + y; }, std::plus<>());
  expect_binary([](Expr x, Expr y) { return x - y; }, std::minus<>());
  expect_binary([](Expr x, Expr y) { return x * y; }, std::multiplies<>());
  expect_binary([](Expr x, Expr y) { return x / y; }, [](double x, double y) { return x / y; });
  expect_binary([](Expr x, Expr y) { return pow(x, y); },
                [](double x, double y) { return std::pow(x, y); });
  expect_binary([](Expr x, Expr y) { return atan2(x, y); },
                [](double x, double y) { return std::atan2(x, y); });
}

TEST(Evaluate, ComparisonsWithNaNAreFalseExceptUnequal) {
  expect_binary([](Expr x, Expr y) { return x == y; }, std::equal_to<>());
  expect_binary([](Expr x, Expr y) { return x != y; }, std::not_equal_to<>());
  expect_binary([](Expr x, Expr y) { return x < y; }, std::less<>());
  expect_binary([](Expr x, Expr y) { return x <= y; }, std::less_equal<>());
  expect_binary([](Expr x, Expr y) { return x > y; }, std::greater<>());
  expect_binary([](Expr x, Expr y) { return x >= y; }, std::greater_equal<>());
}

TEST(Evaluate, IsNanHoldsForNaNAlone) {
  expect_unary([](Expr x) { return is_nan(x); },
               [](double x) { return std::isnan(x) ? 1.0 : 0.0; });
  expect_unary([](Expr x) { return is_inf(x); },
               [](double x) { return std::isinf(x) ? 1.0 : 0.0; });
  expect_unary([](Expr x) { return is_finite(x); },
               [](double x) { return std::isfinite(x) ? 1.0 : 0.0; });
}

TEST(Evaluate, LogicGivesZeroOrOne) {
  for (const double a : {0.0, 1.0}) {
    EXPECT_EQ(value(body_of([](Expr x) { return !x; }), a), 1 - a);
    for (const double b : {0.0, 1.0}) {
      const std::array in{a, b};
      EXPECT_EQ(evaluate(*body_of([](Expr x, Expr y) { return x && y; }), 0, in), a * b);
      EXPECT_EQ(evaluate(*body_of([](Expr x, Expr y) { return x || y; }), 0, in), std::fmax(a, b));
    }
  }
}

TEST(Evaluate, SelectTakesTheSecondOperandWhereTheFirstHolds) {
  const auto body = body_of([](Expr x, Expr y, Expr z) { return select(x, y, z); });
  EXPECT_EQ(evaluate(*body, 0, std::array{1.0, 2.0, nan}), 2);
  EXPECT_EQ(evaluate(*body, 0, std::array{0.0, nan, 3.0}), 3);
}

TEST(Evaluate, MinAndMaxKeepNaNFromEitherSide) {
  const auto keep = [](double x, double y, double other) {
    return std::isnan(x) || std::isnan(y) ? nan : other;
  };
  for (const double x : samples) {
    for (const double y : samples) {
      const std::array in{x, y};
      const double low = evaluate(*body_of([](Expr a, Expr b) { return min(a, b); }), 0, in);
      const double high = evaluate(*body_of([](Expr a, Expr b) { return max(a, b); }), 0, in);
      const double least = keep(x, y, std::fmin(x, y));
      const double most = keep(x, y, std::fmax(x, y));
      EXPECT_TRUE(low == least || (std::isnan(low) && std::isnan(least))) << x << " " << y;
      EXPECT_TRUE(high == most || (std::isnan(high) && std::isnan(most))) << x << " " << y;
    }
  }
}

TEST(Evaluate, OfTwoZerosTheSmallerHasTheSign) {
  const auto low = body_of([](Expr a, Expr b) { return min(a, b); });
  const auto high = body_of([](Expr a, Expr b) { return max(a, b); });
  for (const bool swapped : {false, true}) {
    const std::array in{swapped ? 0.0 : -0.0, swapped ? -0.0 : 0.0};
    EXPECT_TRUE(std::signbit(evaluate(*low, 0, in)));
    EXPECT_FALSE(std::signbit(evaluate(*high, 0, in)));
  }
  EXPECT_TRUE(std::signbit(evaluate(*high, 0, std::array{-0.0, -0.0})));
  EXPECT_FALSE(std::signbit(evaluate(*low, 0, std::array{0.0, 0.0})));
}

TEST(Evaluate, SoftplusIsRightForEveryInput) {
  const auto body = body_of([](Expr x) { return softplus(x); });
  EXPECT_DOUBLE_EQ(value(body, 0), std::log(2.0));
  EXPECT_EQ(value(body, 1e30), 1e30);
  EXPECT_EQ(value(body, inf), inf);
  EXPECT_EQ(value(body, -inf), 0);
  EXPECT_DOUBLE_EQ(value(body, -40), std::exp(-40.0));
  EXPECT_TRUE(std::isnan(value(body, nan)));
}

TEST(Evaluate, ReluKeepsNaN) {
  expect_unary([](Expr x) { return relu(x); },
               [](double x) { return std::isnan(x) ? nan
                                     : x > 0       ? x
                                                   : 0.0; });
}

TEST(Evaluate, AClampMadeOfMinAndMaxKeepsNaN) {
  const auto clamp = body_of([](Expr x) { return min(max(x, -1), 1); });
  EXPECT_TRUE(std::isnan(value(clamp, nan)));
  EXPECT_EQ(value(clamp, -7), -1);
  EXPECT_EQ(value(clamp, 0.5), 0.5);
  EXPECT_EQ(value(clamp, inf), 1);
}

TEST(Evaluate, SigmoidIsRightForEveryInput) {
  const auto body = body_of([](Expr x) { return sigmoid(x); });
  for (double x = -40; x <= 40; x += 0.37) {
    const double expected = 0.5 * (1 + std::tanh(x / 2));
    EXPECT_NEAR(value(body, x), expected, 1e-15) << x;
  }
  EXPECT_EQ(value(body, -inf), 0);
  EXPECT_EQ(value(body, inf), 1);
  EXPECT_EQ(value(body, 1e30), 1);
  EXPECT_DOUBLE_EQ(value(body, -100), std::exp(-100.0));
  EXPECT_TRUE(std::isnan(value(body, nan)));
}

TEST(Evaluate, CastsRoundTruncateAndSaturate) {
  const auto to_f32 = body_of([](Expr x) { return cast(x, DType::f32); });
  const auto to_f16 = body_of([](Expr x) { return cast(x, DType::f16); });
  const auto to_i32 = body_of([](Expr x) { return cast(x, DType::i32); });
  const auto to_u32 = body_of([](Expr x) { return cast(x, DType::u32); });
  const auto to_bool = body_of([](Expr x) { return cast(x, DType::boolean); });
  EXPECT_EQ(value(to_f32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(value(to_f16, 1 + 0x1p-11), 1);
  EXPECT_EQ(value(to_f16, 65520), inf);
  EXPECT_EQ(value(to_f16, 1e-9), 0);
  EXPECT_EQ(value(to_i32, nan), 0);
  EXPECT_EQ(value(to_u32, nan), 0);
  EXPECT_EQ(value(to_i32, -2.9), -2);
  EXPECT_EQ(value(to_i32, 1e30), 2147483647.0);
  EXPECT_EQ(value(to_i32, -1e30), -2147483648.0);
  EXPECT_EQ(value(to_u32, 2.9), 2);
  EXPECT_EQ(value(to_u32, -3), 0);
  EXPECT_EQ(value(to_u32, 1e30), 4294967295.0);
  EXPECT_EQ(value(to_bool, 0), 0);
  EXPECT_EQ(value(to_bool, -0.5), 1);
  EXPECT_EQ(value(to_bool, nan), 1);
}

TEST(Evaluate, GivesTheRootThatIsAskedFor) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const auto body = make_body(graph, 1, 0, std::array{(x + 1).id(), (x * 3).id()});
  EXPECT_EQ(evaluate(*body, 0, std::array{5.0}), 6);
  EXPECT_EQ(evaluate(*body, 1, std::array{5.0}), 15);
}

TEST(OpcodeTable, RowsStandUnderTheirOpcodesWithTheirArity) {
  for (int i = 0; i <= static_cast<int>(Opcode::select); ++i) {
    const auto op = static_cast<Opcode>(i);
    const OpcodeRow& r = row(op);
    EXPECT_EQ(r.op, op);
    EXPECT_FALSE(r.name.empty());
    EXPECT_EQ(r.wgsl.find("$d"), std::string_view::npos);
    for (int arg = 0; arg < 3 && !r.wgsl.empty(); ++arg) {
      const std::string mark{'$', static_cast<char>('a' + arg)};
      EXPECT_EQ(r.wgsl.find(mark) != std::string_view::npos, arg < r.arity) << r.name << mark;
    }
  }
  EXPECT_EQ(row(Opcode::input).arity, 0);
  EXPECT_EQ(row(Opcode::cast).arity, 1);
  EXPECT_EQ(row(Opcode::pow).arity, 2);
  EXPECT_EQ(row(Opcode::select).arity, 3);
}

}  // namespace
}  // namespace kiln
