#include "kiln/ops/elementwise/elementwise_test_support.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::binary;
using test::Binary;
using test::expect_near;
using test::make;
using test::make_wave;
using test::message_of;
using test::unary;
using test::Unary;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> numbers(const Unary& op, std::int64_t count) {
  std::vector<float> x = test::wave(count);
  for (float& v : x) v = op.positive ? std::abs(v) * 3 : v * 3;
  return x;
}

TEST(Elementwise, UnaryValuesInF32AndF16) {
  for (const Unary& op : unary()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AnyTensor x = make(numbers(op, 37), {37}, dtype);
      const AnyTensor y = op.run(x);
      EXPECT_EQ(y.spec(), x.spec());
      std::vector<double> expected;
      for (const float v : values(x)) expected.push_back(op.expected(v));
      expect_near(values(y), expected, test::tolerance_of(dtype), op.name);
    }
  }
}

TEST(Elementwise, UnaryGradientsAgreeWithDifferences) {
  for (const Unary& op : unary()) {
    std::vector<float> x = numbers(op, 7);
    for (float& v : x) v = op.positive ? v + 0.3F : v;
    test::expect_gradients(
        op.name, [&](const auto& in) { return op.run(in[0]); }, {make(x, {7})}, 5e-3);
  }
}

TEST(Elementwise, UnaryGradientsInF16AreThoseOfF32) {
  for (const Unary& op : unary()) {
    std::vector<float> x = numbers(op, 8);
    for (float& v : x) v = static_cast<float>(float16(op.positive ? v + 0.5F : v));
    const auto f = [&](const std::vector<AnyTensor>& in) { return op.run(in[0]); };
    const AnyTensor f16 = test::gradients_of(f, {make(x, {8}, DType::f16)})[0];
    EXPECT_EQ(f16.dtype(), DType::f16);
    expect_near(values(f16), test::doubles(values(test::gradients_of(f, {make(x, {8})})[0])), 8e-3,
                op.name);
  }
}

TEST(Elementwise, BinaryValuesInF32AndF16) {
  for (const Binary& op : binary()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AnyTensor a = make_wave({33}, 0, dtype);
      const AnyTensor b = make_wave({33}, 1, dtype);
      std::vector<double> expected;
      for (std::size_t i = 0; i < 33; ++i)
        expected.push_back(op.expected(values(a)[i], values(b)[i]));
      expect_near(values(op.run(a, b)), expected, 2 * test::tolerance_of(dtype), op.name);
    }
  }
}

TEST(Elementwise, BinaryGradientsAgreeWithDifferencesAndReduceOverBroadcasts) {
  for (const Binary& op : binary()) {
    const auto f = [&](const std::vector<AnyTensor>& in) { return op.run(in[0], in[1] + 1.6); };
    test::expect_gradients(op.name, f, {make_wave({2, 3}), make_wave({2, 3}, 1)}, 6e-3);
    test::expect_gradients(op.name, f, {make_wave({2, 1}), make_wave({3}, 1)}, 6e-3);
  }
}

/// Element `i` of a result of shape `out`, seen in an operand that broadcasts to it.
std::size_t source_of(std::size_t i, const Shape& out, const Shape& operand) {
  std::size_t at = 0;
  std::size_t step = 1;
  for (int axis = -1; axis >= -out.rank(); --axis) {
    const auto size = static_cast<std::size_t>(out[axis]);
    if (axis >= -operand.rank()) {
      if (operand[axis] != 1) at += i % size * step;
      step *= static_cast<std::size_t>(operand[axis]);
    }
    i /= size;
  }
  return at;
}

TEST(Elementwise, ShapesBroadcastAtEveryPlace) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{}, {}},
      {{}, {3}},
      {{1}, {2}},
      {{4, 3}, {3}},
      {{4, 1}, {3}},
      {{1, 1}, {}},
      {{2, 1, 4}, {3, 1}},
      {{2, 3, 4}, {1, 3, 1}},
      {{3, 1, 1}, {1, 2, 4}},
      {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 3, 1, 2}},
      {{2, 1, 2, 1, 2, 1, 2, 2}, {2}},
      {{0}, {1}},
      {{0, 4}, {4}},
      {{2, 0, 3}, {1, 1}},
      {{0, 1}, {0, 3}},
  };
  for (const auto& [left, right] : pairs) {
    const AnyTensor a = make_wave(left);
    const AnyTensor b = make_wave(right, 1);
    for (const bool swapped : {false, true}) {
      const AnyTensor y = swapped ? b - a : a - b;
      EXPECT_EQ(y.shape(), broadcast("test", left, right));
      std::vector<double> expected;
      for (std::size_t i = 0; i < values(y).size(); ++i) {
        const double difference = double{values(a)[source_of(i, y.shape(), left)]} -
                                  double{values(b)[source_of(i, y.shape(), right)]};
        expected.push_back(swapped ? -difference : difference);
      }
      expect_near(values(y), expected, 1e-6, to_string(left) + " - " + to_string(right));
    }
  }
  EXPECT_THAT(message_of<ShapeError>([] { (void)(make_wave({2, 3}) + make_wave({2})); }),
              AllOf(HasSubstr("add"), HasSubstr("[2, 3]"), HasSubstr("[2]")));
}

TEST(Elementwise, EveryWayToLieInMemoryIsRead) {
  for (const Shape& shape :
       {Shape{5}, Shape{3, 4}, Shape{2, 3, 4}, Shape{1, 3, 1, 2, 2, 1, 2, 2}, Shape{0, 3}}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AnyTensor a = make_wave(shape, 0, dtype);
      const AnyTensor b = make_wave(shape, 1, dtype);
      const std::vector<float> expected = values(a * b);
      for (const AnyTensor& x : test::other_views(a)) {
        EXPECT_EQ(values(x), values(a));
        EXPECT_EQ(values(x * b), expected) << to_string(shape);
        EXPECT_EQ(values(b * x), expected) << to_string(shape);
        for (const AnyTensor& y : test::other_views(b)) EXPECT_EQ(values(x * y), expected);
        EXPECT_EQ(test::counted([&] { return (x * b); }).launches, shape[0] == 0 ? 0U : 1U)
            << "nothing is copied";
      }
    }
  }
  const AnyTensor row = broadcast_to(make<float>({1, 2}, {2}), {3, 2});
  EXPECT_THAT(values(row + row), ElementsAre(2, 4, 2, 4, 2, 4));
  EXPECT_THAT(values(transpose(row) + transpose(row)), ElementsAre(2, 2, 2, 4, 4, 4));
}

/// x / (x + a small number), which f16 has not.
struct Damped {
  static constexpr std::string_view name = "damped";
  Param small;
  Expr body(Expr x) const { return x / (x + small); }
};
struct DampedByLiteral {
  static constexpr std::string_view name = "damped";
  static Expr body(Expr x) { return x / (x + 1e-8); }
};

TEST(Elementwise, NumbersBesideF16TakePartInF32) {
  const AnyTensor x = make({0, 1}, {2}, DType::f16);
  EXPECT_THAT(values(apply(Damped{{1e-8}}, x)), ElementsAre(0, 1));
  EXPECT_THAT(values(apply(DampedByLiteral{}, x)), ElementsAre(0, 1));
  // Rounded once, at the end: neither 1e-5 nor 1e6 is a number of f16.
  EXPECT_THAT(values(make({1000}, {1}, DType::f16) * 1e-5),
              ElementsAre(static_cast<float>(float16(1e-2F))));
  EXPECT_THAT(values(make({0.5F}, {1}, DType::f16) / 1e6),
              ElementsAre(static_cast<float>(float16(5e-7F))));
  EXPECT_THAT(values(less(make({0.1F}, {1}, DType::f16), 0.1)), ElementsAre(1))
      << "the nearest f16 is below";
}

TEST(Elementwise, ClampTakesIntegersToo) {
  const AnyTensor i = make<std::int32_t>({-7, 0, 7, -2147483648}, {4});
  EXPECT_THAT(clamp(i, -2, 5).to_vector<std::int32_t>(), ElementsAre(-2, 0, 5, -2));
  const AnyTensor u = make<std::uint32_t>({0, 3, 4000000000U}, {3});
  EXPECT_THAT(clamp(u, 1, 3000000000.0).to_vector<std::uint32_t>(),
              ElementsAre(1U, 3U, 3000000000U));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)clamp(i, -0.5, 5); }),
              AllOf(HasSubstr("clamp"), HasSubstr("-0.5"), HasSubstr("i32")));
}

TEST(Elementwise, IntegersComputeAsIntegers) {
  const AnyTensor a = make<std::int32_t>({7, -7, 16777217, -2147483647}, {4});
  const AnyTensor b = make<std::int32_t>({2, 2, 1, 1}, {4});
  EXPECT_THAT((a + b).to_vector<std::int32_t>(), ElementsAre(9, -5, 16777218, -2147483646));
  EXPECT_THAT((a / b).to_vector<std::int32_t>(), ElementsAre(3, -3, 16777217, -2147483647));
  EXPECT_THAT((a * 2 - 1).to_vector<std::int32_t>()[1], -15);
  EXPECT_THAT(maximum(a, b).to_vector<std::int32_t>(), ElementsAre(7, 2, 16777217, 1));
  EXPECT_THAT(relu(a).to_vector<std::int32_t>(), ElementsAre(7, 0, 16777217, 0));
  EXPECT_THAT(abs(a).to_vector<std::int32_t>(), ElementsAre(7, 7, 16777217, 2147483647));
  const AnyTensor u = make<std::uint32_t>({4000000000U, 3}, {2});
  EXPECT_THAT((u / 2).to_vector<std::uint32_t>(), ElementsAre(2000000000U, 1U));
  EXPECT_THAT(minimum(u, u + 1).to_vector<std::uint32_t>(), ElementsAre(4000000000U, 3U));
}

TEST(Elementwise, DTypesThatDoNotFitAreRefused) {
  const AnyTensor i = make<std::int32_t>({1}, {1});
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(i + make<float>({1}, {1})); }),
              AllOf(HasSubstr("add"), HasSubstr("i32"), HasSubstr("f32")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)exp(i); }),
              AllOf(HasSubstr("exp"), HasSubstr("i32")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(i * 0.5); }),
              AllOf(HasSubstr("mul"), HasSubstr("0.5")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(make<std::uint32_t>({1}, {1}) + -1); }),
              HasSubstr("-1"));
  EXPECT_THROW((void)(make<std::uint32_t>({1}, {1}) * make({1}, {1}, DType::f16)), DTypeError);
}

TEST(Elementwise, ScalarsNeverCompileAKernelOfTheirOwn) {
  const AnyTensor x = make<float>({1, 2}, {2});
  (void)(x * 2);
  const auto spent = test::counted([&] {
    for (int i = 0; i < 10; ++i)
      EXPECT_THAT(values(x * (0.5 * i)),
                  ElementsAre(0.5F * static_cast<float>(i), static_cast<float>(i)));
  });
  EXPECT_EQ(spent.compiled, 0U);
  EXPECT_THAT(values(make({1}, {1}, DType::f16) * 0.1),
              ElementsAre(static_cast<float>(float16(0.1F))));
}

TEST(Elementwise, ManyElementsTakeAFoldedGrid) {
  const std::int64_t n = 65535LL * 256 + 300;
  const AnyTensor x = broadcast_to(make<float>({1}, {1}), {n}) + 1;
  EXPECT_EQ(values(slice(x, 0, n - 1))[0], 2);
  EXPECT_EQ(values(slice(x, 0, 65535LL * 256 - 1, 65535LL * 256 + 1)), (std::vector<float>{2, 2}));
}

TEST(Elementwise, ExtremesTakeANumberOnEitherSide) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({-2, 0.5, 3, NAN}, {4}, dtype);
    for (const AnyTensor& y : {maximum(x, 0.0), maximum(0, x)}) {
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_THAT(values(slice(y, 0, 0, 3)), ElementsAre(0, 0.5F, 3));
      EXPECT_TRUE(std::isnan(values(y)[3]));
    }
    for (const AnyTensor& y : {minimum(x, 1), minimum(1.F, x)}) {
      EXPECT_THAT(values(slice(y, 0, 0, 3)), ElementsAre(-2, 0.5F, 1));
      EXPECT_TRUE(std::isnan(values(y)[3]));
    }
  }
  EXPECT_THAT(values(maximum(make<std::int32_t>({-3, 4}, {2}), 1)), ElementsAre(1, 4));
  EXPECT_THROW((void)maximum(make<std::uint32_t>({3}, {1}), -1), DTypeError);
  const AnyTensor x = make_wave({2, 5});
  test::expect_gradients("maximum", [](const auto& in) { return maximum(in[0], 0.1); }, {x});
  test::expect_gradients("minimum", [](const auto& in) { return minimum(-0.2, in[0]); }, {x});
  const auto g = test::gradients_of([](const auto& in) { return maximum(in[0], 0); },
                                    {make<float>({-1, 0, 1}, {3})}, 1.0F);
  EXPECT_THAT(values(g[0]), ElementsAre(0, 0.5F, 1)) << "half of it where both are equal";
}

TEST(Elementwise, AssigningOperatorsGiveTheHandleAnotherTensor) {
  AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor old = x;
  x += make<float>({10, 20}, {2});
  EXPECT_THAT(values(x), ElementsAre(11, 22));
  x -= 1;
  EXPECT_THAT(values(x), ElementsAre(10, 21));
  x *= make<float>({2, 3}, {2});
  EXPECT_THAT(values(x), ElementsAre(20, 63));
  x /= 2.0;
  EXPECT_THAT(values(x), ElementsAre(10, 31.5F));
  ((x -= old) *= old) += 1;
  EXPECT_THAT(values(x), ElementsAre(10, 60));
  x /= x;
  EXPECT_THAT(values(x), ElementsAre(1, 1));
  x *= 2;
  x /= make<float>({4, 8}, {2});
  x -= x;
  EXPECT_THAT(values(x), ElementsAre(0, 0));
  EXPECT_THAT(values(old), ElementsAre(1, 2)) << "others keep what they have";
  AnyTensor i = make<std::int32_t>({1}, {1});
  EXPECT_THROW(i += 0.5, DTypeError);
  EXPECT_THAT(i.to_vector<std::int32_t>(), ElementsAre(1)) << "nothing was assigned";
}

TEST(Elementwise, AssigningOperatorsBroadcastAndKeepARank) {
  AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor column = make<float>({10, 20}, {2, 1});
  Tensor<1> typed = x;
  EXPECT_THAT(message_of<ShapeError>([&] { typed += column; }),
              AllOf(HasSubstr("+="), HasSubstr("[2, 2]"), HasSubstr("rank 1")));
  EXPECT_THAT(values(typed), ElementsAre(1, 2));
  Tensor<1>& same = typed *= 3;
  EXPECT_THAT(values(same), ElementsAre(3, 6));
  x += column;
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_THAT(values(x), ElementsAre(11, 12, 21, 22));
}

TEST(Elementwise, AssigningOperatorsAreDifferentiable) {
  test::expect_gradients("assigning",
                         [](const auto& in) {
                           AnyTensor x = in[0];
                           x *= in[1];
                           x += in[0];
                           x -= 2 * in[1];
                           x /= 4;
                           return x;
                         },
                         {make_wave({2, 3}), make_wave({3}, 1)});
  // A step of training.
  AnyTensor w = make<float>({1, 2}, {2}, test::device().autodiff()).require_grad();
  const AnyTensor g = (w * w).sum().backward().of(w);
  w = w.detach();
  w -= 0.25 * g;
  EXPECT_FALSE(w.tracked());
  EXPECT_THAT(values(w), ElementsAre(0.5F, 1));
}

TEST(Elementwise, ClampHasTheUpperBoundWhereBoundsAreSwapped) {
  EXPECT_THAT(values(clamp(make<float>({0, 2, 4}, {3}), 3, 1)), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(clamp(make<std::int32_t>({0, 2, 4}, {3}), 3, 1)), ElementsAre(1, 1, 1));
}

}  // namespace
}  // namespace kiln
