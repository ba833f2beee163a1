// Reductions with what is computed on the way in, against the host.
#include "kiln/dispatch/reduction/reduction.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "kiln/dispatch/reduction/reduction_test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

using dispatch::ReductionCall;
using test::axes_of;
using test::counted;
using test::expect_reduction;
using test::Given;
using test::given_values;
using test::given_wave;
using test::message_of;
using test::out_of;
using test::turned;
using ::testing::AllOf;
using ::testing::HasSubstr;

const double inf = std::numeric_limits<double>::infinity();

BodyPtr square() {
  return body_of([](const Expr& x) { return x * x; });
}

/// (x + p0) * p1
BodyPtr shifted_and_scaled() {
  const std::array<Param, 2> params;
  ExprGraph graph({&params[0], &params[1]});
  const Expr x = graph.input(0);
  return make_body(graph, 1, 2, std::array{graph.place((x + params[0]) * params[1])});
}

TEST(Reduction, TakesABodyOfInputsThatLieInEveryWay) {
  const Shape shape{4, 6, 8};
  const std::vector<Given> inputs{turned(given_wave({8, 4, 6}), {1, 2, 0}), given_wave({6, 1}, 1),
                                  given_wave({4, 1, 8}, 2)};
  const BodyPtr body =
      body_of([](const Expr& x, const Expr& y, const Expr& z) { return x * y + z; });
  for (unsigned axes = 0; axes < 8; ++axes) {
    for (const Combine combine : {Combine::sum, Combine::max, Combine::min})
      expect_reduction({"r", {combine, axes_of(axes)}, shape, body}, inputs);
  }
}

TEST(Reduction, ReadsQuadsBesideInputsThatAreConstantAlongThem) {
  const Shape shape{3, 5, 64};
  const std::vector<Given> inputs{given_wave(shape), given_wave({3, 5, 1}, 1), given_wave({64}, 2)};
  const BodyPtr body =
      body_of([](const Expr& x, const Expr& y, const Expr& z) { return (x - y) * z; });
  for (const unsigned axes : {4U, 5U, 6U, 7U})
    expect_reduction({"r", {Combine::sum, axes_of(axes)}, shape, body}, inputs);
}

TEST(Reduction, OfANormNoSquareLeavesTheRange) {
  for (const double size : {1e-35, 1e-25, 1e-19, 1.0, 1e15, 1e25, 1e36}) {
    for (const auto& [shape, axes] :
         {std::pair{Shape{2, 5}, 2U}, {{3, 7000}, 2U}, {{7000, 3}, 1U}}) {
      std::vector<float> numbers = test::wave(shape.elements());
      std::vector<double> values;
      double most = 0;
      for (const float v : numbers) {
        values.push_back(double{static_cast<float>(double{v} * size)});
        most = std::max(most, std::abs(values.back()));
      }
      const ReductionCall call{"r", {Combine::norm, axes_of(axes)}, shape};
      const std::vector<Given> given{given_values(values, shape)};
      std::vector<double> expected = test::reduced_on_host(call, given, DType::f32);
      std::vector<double> got = test::numbers_of(test::run(call, given, out_of(call))[0]);
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i] / expected[i], 1, 2e-6) << size << " " << to_string(shape);
    }
  }
  const auto of = [](std::vector<double> x) {
    const Shape shape{static_cast<std::int64_t>(x.size())};
    const ReductionCall call{"r", {Combine::norm, axes_of(1)}, shape};
    return test::numbers_of(
        test::run(call, {given_values(std::move(x), shape)}, out_of(call))[0])[0];
  };
  EXPECT_EQ(of({1e30, 3e-30, 0}), double{1e30F});
  EXPECT_EQ(of({3, -4, 1e-30, -0.0}), 5);
  EXPECT_EQ(of({0, -0.0}), 0);
  EXPECT_EQ(of({1, -inf, 2}), inf);
  EXPECT_TRUE(std::isnan(of({1, std::nan(""), 1e30})));
  EXPECT_TRUE(std::isnan(of({inf, std::nan("")})));
}

TEST(Reduction, OfSquaresInBothKernelsAndTheirSplits) {
  const std::vector<std::pair<Shape, unsigned>> cases = {
      {{3, 5000}, 2},    {{1, 20001}, 2},  {{2000, 33}, 2}, {{2000, 31}, 2}, {{2000, 32}, 2},
      {{5000, 3}, 1},    {{300, 1025}, 1}, {{20001, 1}, 1}, {{129, 4}, 1},   {{40, 30, 50}, 5},
      {{40, 30, 50}, 2}, {{3000, 2}, 2},   {{100000}, 1},   {{257, 255}, 3}, {{1030, 5}, 2},
      {{9, 1024}, 2},    {{5, 2052}, 2},   {{32771, 33}, 2}};
  for (const auto& [shape, axes] : cases) {
    const Given x = given_wave(shape);
    expect_reduction({"r", {Combine::sum, axes_of(axes), 0.25}, shape, square()}, {x});
    expect_reduction({"r", {Combine::norm, axes_of(axes), 0.25}, shape}, {x});
    const std::vector<Given> two{x, given_wave({shape[-1]}, 3)};
    const BodyPtr product = body_of([](const Expr& a, const Expr& b) { return a * b; });
    expect_reduction({"r", {Combine::max, axes_of(axes)}, shape, product}, two);
  }
}

TEST(Reduction, RoundsTheElementToF16BeforeItIsReduced) {
  const Given x = given_values({1, 1.0001, 0.5}, {3});
  const BodyPtr same = body_of([](const Expr& a) { return a * 1.5; });
  expect_reduction({"r", {Combine::argmax, axes_of(1)}, {3}, same, {}, DType::f16}, {x},
                   DType::i32);
  const Given big = given_values({300, -300}, {2}, DType::f16);
  expect_reduction({"r", {Combine::sum, axes_of(1), 1e-3}, {2}, square(), {}, DType::f16}, {big});
  const std::vector<Given> inputs{given_wave({7, 33}, 0, DType::f16),
                                  given_wave({7, 1}, 1, DType::f16)};
  const BodyPtr product = body_of([](const Expr& a, const Expr& b) { return a * b; });
  for (const unsigned axes : {1U, 2U, 3U})
    expect_reduction({"r", {Combine::sum, axes_of(axes)}, {7, 33}, product, {}, DType::f16},
                     inputs);
}

TEST(Reduction, EnablesF16ForABodyThatRoundsInside) {
  const BodyPtr through =
      body_of([](const Expr& a) { return cast(cast(a, DType::f16), DType::f32); });
  expect_reduction({"r", {Combine::sum, axes_of(1)}, {3}, through},
                   {given_values({1.0001, 2, 3}, {3})});
}

TEST(Reduction, IntegersStayIntegers) {
  const Given x = given_values({16777217, 2, -3, -16777219}, {2, 2}, DType::i32);
  const Given y = given_values({1, -1}, {2, 1}, DType::i32);
  const BodyPtr body = body_of([](const Expr& a, const Expr& b) { return a * b + 1; });
  for (const Combine combine : {Combine::sum, Combine::max, Combine::min}) {
    for (const unsigned axes : {1U, 2U, 3U})
      expect_reduction({"r", {combine, axes_of(axes)}, {2, 2}, body, {}, DType::i32}, {x, y});
  }
  const Given u = given_values({4000000000.0, 1}, {2}, DType::u32);
  expect_reduction({"r", {Combine::max, axes_of(1)}, {2}, square(), {}, DType::u32},
                   {given_values({65535, 2}, {2}, DType::u32)});
  expect_reduction({"r", {Combine::argmin, axes_of(1)}, {2}, nullptr, {}, DType::u32}, {u},
                   DType::i32);
}

TEST(Reduction, CountsBoolsThroughACast) {
  const Given x = given_values({1, 0, 1, 1, 0, 0, 1, 1}, {2, 4}, DType::boolean);
  for (const DType dtype : {DType::i32, DType::f32, DType::u32}) {
    const BodyPtr count =
        dtype == DType::i32   ? body_of([](const Expr& a) { return cast(a, DType::i32); })
        : dtype == DType::f32 ? body_of([](const Expr& a) { return cast(a, DType::f32); })
                              : body_of([](const Expr& a) { return cast(a, DType::u32); });
    expect_reduction({"r", {Combine::sum, axes_of(2)}, {2, 4}, count, {}, dtype}, {x});
  }
}

TEST(Reduction, TakesABodyOfParamsAlone) {
  const Param number;
  ExprGraph graph({&number});
  const BodyPtr body = make_body(graph, 0, 1, std::array{graph.place(number)});
  for (const unsigned axes : {1U, 2U, 3U})
    expect_reduction({"r", {Combine::sum, axes_of(axes)}, {5, 40}, body, {0.5}}, {});
}

TEST(Reduction, NewNumbersCompileNothing) {
  const Given x = given_wave({6, 40});
  const auto run = [](const Given& in, const Shape& shape, double p, double scale) {
    expect_reduction({"r", {Combine::sum, axes_of(2), scale}, shape, shifted_and_scaled(), {p, 3}},
                     {in});
  };
  run(x, {6, 40}, 1, 1);
  const auto after = counted([&] {
    run(x, {6, 40}, -2, 0.5);
    run(given_wave({9, 36}), {9, 36}, 7, 1);
  });
  EXPECT_EQ(after.compiled, 0U);
  EXPECT_EQ(after.launches, 2U);
}

TEST(Reduction, BodiesOfTheSameDtypesAreNotMixedUp) {
  const Given x = given_wave({4, 40});
  expect_reduction({"r", {Combine::sum, axes_of(2)}, {4, 40}, square()}, {x});
  expect_reduction({"r", {Combine::sum, axes_of(2)}, {4, 40}, nullptr}, {x});
  expect_reduction(
      {"r", {Combine::sum, axes_of(2)}, {4, 40}, body_of([](const Expr& a) { return exp(a); })},
      {x});
}

TEST(Reduction, KeepsANaNThatTheBodyMakes) {
  const BodyPtr body = body_of([](const Expr& x) { return log(x); });
  for (const int n : {3, 64, 1000, 20000}) {
    std::vector<double> numbers(static_cast<std::size_t>(n), 2);
    numbers[static_cast<std::size_t>(n - 2)] = -1;
    for (const Combine combine :
         {Combine::sum, Combine::max, Combine::min, Combine::argmax, Combine::argmin}) {
      const bool arg = combine == Combine::argmax || combine == Combine::argmin;
      const auto dtype = arg ? std::optional(DType::i32) : std::nullopt;
      expect_reduction({"r", {combine, axes_of(2)}, {1, n}, body}, {given_values(numbers, {1, n})},
                       dtype);
      expect_reduction({"r", {combine, axes_of(1)}, {n, 1}, body}, {given_values(numbers, {n, 1})},
                       dtype);
    }
  }
}

TEST(Reduction, OfNothing) {
  const BodyPtr product = body_of([](const Expr& x, const Expr& y) { return x * y; });
  const std::vector<Given> inputs{given_values({}, {2, 0, 3}), given_wave({2, 1, 3})};
  expect_reduction({"r", {Combine::sum, axes_of(2)}, {2, 0, 3}, product}, inputs);
  expect_reduction({"r", {Combine::sum, axes_of(2), inf}, {2, 0, 3}, product}, inputs);
  expect_reduction({"r", {Combine::sum, axes_of(7)}, {2, 0, 3}, product}, inputs);
  expect_reduction({"r", {Combine::sum, axes_of(1)}, {2, 0, 3}, product}, inputs);
  expect_reduction({"r", {Combine::sum, axes_of(2)}, {2, 0, 3}, square()}, {inputs[1]});
}

TEST(Reduction, ReadsOneTensorTwice) {
  const Given x = given_wave({12, 12});
  const BodyPtr product = body_of([](const Expr& a, const Expr& b) { return a * b; });
  expect_reduction({"r", {Combine::sum, axes_of(2)}, {12, 12}, product}, {x, turned(x, {1, 0})});
}

TEST(Reduction, SaysWhatDoesNotFit) {
  const Given x = given_wave({2, 3});
  const Given i = given_values({1, 2, 3}, {3}, DType::i32);
  const BodyPtr sum = body_of([](const Expr& a, const Expr& b) { return a + b; });
  const auto refusal = [&](const Shape& shape, const std::vector<Given>& inputs) {
    return message_of<Error>([&] {
      const ReductionCall call{"r", {Combine::sum, axes_of(1)}, shape, sum};
      (void)test::run(call, inputs, out_of(call));
    });
  };
  EXPECT_THAT(refusal({2, 3}, {x, i}), AllOf(HasSubstr("r: "), HasSubstr("f32"), HasSubstr("i32")));
  EXPECT_THAT(refusal({2, 4}, {x, x}), AllOf(HasSubstr("[2, 3]"), HasSubstr("[2, 4]")));
  EXPECT_THAT(refusal({2, 3}, {x}),
              AllOf(HasSubstr("r: "), HasSubstr("2 inputs"), HasSubstr("1 and")));
}

TEST(Reduction, RefusesWhatIsPast32Bits) {
  const Given one = given_wave({1, 1});
  for (const Shape& shape : {Shape{1 << 20, 1 << 13}, Shape{(1 << 16) + 1, (1 << 16) - 1}}) {
    const ReductionCall call{"r", {Combine::argmax, axes_of(3)}, shape};
    EXPECT_THAT(message_of<ShapeError>([&] { (void)test::run(call, {one}, out_of(call)); }),
                AllOf(HasSubstr("r: "), HasSubstr("32 bits")));
  }
}

RC_GTEST_PROP(Reduction, AgreesWithTheHostWhateverTheShapes, ()) {
  const Shape shape = test::arbitrary_shape();
  const auto axes = *rc::gen::inRange(0U, 1U << shape.size());
  const int inputs = *rc::gen::inRange(1, 4);
  std::vector<Given> given;
  for (int i = 0; i < inputs; ++i) given.push_back(test::arbitrary_given(shape));
  const std::array bodies{
      body_of([](const Expr& x) { return x * 0.5; }),
      body_of([](const Expr& x, const Expr& y) { return x - y; }),
      body_of([](const Expr& x, const Expr& y, const Expr& z) { return x * y + z; })};
  const Combine combine = *rc::gen::element(Combine::sum, Combine::max, Combine::min);
  expect_reduction(
      {"r", {combine, axes_of(axes)}, shape, bodies[static_cast<std::size_t>(inputs - 1)]}, given);
}

}  // namespace
}  // namespace kiln
