#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"

#include "kiln/ops/create/create.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr float inf = std::numeric_limits<float>::infinity();

TEST(Compare, GivesBoolsAndIsFalseForNaN) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor a = make({1, 2, 3, NAN, NAN}, {5}, dtype);
    const AnyTensor b = make({2, 2, 2, 2, NAN}, {5}, dtype);
    EXPECT_EQ(less(a, b).dtype(), DType::boolean);
    EXPECT_THAT(less(a, b).to_vector<bool>(), ElementsAre(true, false, false, false, false));
    EXPECT_THAT(values(less_equal(a, b)), ElementsAre(1, 1, 0, 0, 0));
    EXPECT_THAT(values(greater(a, b)), ElementsAre(0, 0, 1, 0, 0));
    EXPECT_THAT(values(greater_equal(a, b)), ElementsAre(0, 1, 1, 0, 0));
    EXPECT_THAT(values(equal(a, b)), ElementsAre(0, 1, 0, 0, 0));
    EXPECT_THAT(values(not_equal(a, b)), ElementsAre(1, 0, 1, 1, 1));
    EXPECT_THAT(values(is_nan(a)), ElementsAre(0, 0, 0, 1, 1));
    EXPECT_THAT(values(less(a, 2)), ElementsAre(1, 0, 0, 0, 0));
    EXPECT_THAT(values(greater(a, 2)), ElementsAre(0, 0, 1, 0, 0));
    EXPECT_THAT(values(equal(a, 2)), ElementsAre(0, 1, 0, 0, 0));
  }
}

TEST(Compare, OperatorsCompareElementsAndTakeANumberOnEitherSide) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor a = make({1, 2, 3, NAN}, {4}, dtype);
    const AnyTensor b = make({2, 2, 2, NAN}, {4}, dtype);
    EXPECT_THAT((a == b).to_vector<bool>(), ElementsAre(false, true, false, false));
    EXPECT_THAT(values(a != b), ElementsAre(1, 0, 1, 1));
    EXPECT_THAT(values(a < b), ElementsAre(1, 0, 0, 0));
    EXPECT_THAT(values(a <= b), ElementsAre(1, 1, 0, 0));
    EXPECT_THAT(values(a > b), ElementsAre(0, 0, 1, 0));
    EXPECT_THAT(values(a >= b), ElementsAre(0, 1, 1, 0));

    EXPECT_THAT(values(a == 2), ElementsAre(0, 1, 0, 0));
    EXPECT_THAT(values(a != 2), ElementsAre(1, 0, 1, 1));
    EXPECT_THAT(values(a < 2), ElementsAre(1, 0, 0, 0));
    EXPECT_THAT(values(a <= 2.0), ElementsAre(1, 1, 0, 0));
    EXPECT_THAT(values(a > 2.0F), ElementsAre(0, 0, 1, 0));
    EXPECT_THAT(values(a >= 2U), ElementsAre(0, 1, 1, 0));

    EXPECT_THAT(values(2 == a), ElementsAre(0, 1, 0, 0));
    EXPECT_THAT(values(2 != a), ElementsAre(1, 0, 1, 1));
    EXPECT_THAT(values(2 < a), ElementsAre(0, 0, 1, 0));
    EXPECT_THAT(values(2 <= a), ElementsAre(0, 1, 1, 0));
    EXPECT_THAT(values(2 > a), ElementsAre(1, 0, 0, 0));
    EXPECT_THAT(values(2 >= a), ElementsAre(1, 1, 0, 0));
  }
  const AnyTensor x = make<float>({-1, 0, 1, 2}, {4});
  EXPECT_THAT(values(x > 0 && x < 2), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(values(!(x > 0) || x == 2), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(values((x > make<float>({0, 1}, {2, 1}))), ElementsAre(0, 0, 1, 1, 0, 0, 0, 1));
  EXPECT_THROW((void)(make<std::int32_t>({1}, {1}) > 0.5), DTypeError);
}

TEST(Compare, TypedTensorsCompareToo) {
  const Tensor<1> a = make<float>({1, 2}, {2});
  const Tensor<2> b = make<float>({2, 2}, {1, 2});
  const Tensor<2> equal_ones = a == b;
  EXPECT_THAT(values(equal_ones), ElementsAre(0, 1));
  EXPECT_THAT(values(a > 1), ElementsAre(0, 1));
}

TEST(Compare, IntegersCompareExactly) {
  const AnyTensor a = make<std::int32_t>({16777216, -5, 7}, {3});
  EXPECT_THAT(values(less(a, make<std::int32_t>({16777217, -6, 7}, {3}))), ElementsAre(1, 0, 0));
  EXPECT_THAT(values(equal(a, 7)), ElementsAre(0, 0, 1));
  const AnyTensor u = make<std::uint32_t>({4000000000U, 1}, {2});
  EXPECT_THAT(values(greater(u, 3000000000.0)), ElementsAre(1, 0));
}

TEST(Compare, ShapesBroadcastAndViewsAreRead) {
  const AnyTensor x = make<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(values(less(x, make<float>({2, 5}, {2, 1}))), ElementsAre(1, 0, 0, 1, 0, 0));
  EXPECT_THAT(values(less(transpose(x), make<float>({2, 5}, {2}))), ElementsAre(1, 1, 0, 0, 0, 0));
  EXPECT_EQ(less(make<float>({}, {0, 3}), make<float>({1}, {})).shape(), (Shape{0, 3}));
}

TEST(Compare, BoolsCombine) {
  const AnyTensor a = tensor({true, true, false, false}, {4}, test::device());
  const AnyTensor b = tensor({true, false, true, false}, {4}, test::device());
  EXPECT_THAT(values(logical_and(a, b)), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(values(logical_or(a, b)), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(values(logical_not(a)), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(values(equal(a, b)), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(values(transpose(reshape(logical_not(a), {2, 2}))), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)logical_and(a, make<float>({1}, {1})); }),
              AllOf(HasSubstr("logical_and"), HasSubstr("f32")));
  EXPECT_THROW((void)less(a, b), DTypeError);
}

TEST(Compare, WherePicksAndLetsTheOtherSideBe) {
  const AnyTensor condition = tensor({true, false, true}, {3}, test::device());
  EXPECT_THAT(
      values(where(condition, make<float>({1, NAN, 3}, {3}), make<float>({NAN, 5, inf}, {3}))),
      ElementsAre(1, 5, 3));
  EXPECT_THAT(
      values(where(condition, make<std::int32_t>({1, 2, 3}, {3}), make<std::int32_t>({-4}, {1}))),
      ElementsAre(1, -4, 3));
  EXPECT_THAT(values(where(condition, condition, logical_not(condition))), ElementsAre(1, 1, 1));
  EXPECT_THROW((void)where(make<float>({1}, {1}), make<float>({1}, {1}), make<float>({1}, {1})),
               DTypeError);
  EXPECT_THROW((void)where(condition, make<float>({1}, {1}), make<std::int32_t>({1}, {1})),
               DTypeError);
}

TEST(Compare, WhereTakesNumbers) {
  const AnyTensor condition = tensor({true, false, true}, test::device());
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({1, NAN, 3}, {3}, dtype);
    EXPECT_THAT(values(where(condition, x, 0.0)), ElementsAre(1, 0, 3));
    EXPECT_EQ(where(condition, x, 0.0).dtype(), dtype);
    EXPECT_THAT(values(where(!condition, -2, x)), ElementsAre(1, -2, 3));
  }
  const AnyTensor i = make<std::int32_t>({16777217, 2, 3}, {3});
  EXPECT_THAT(where(condition, i, -5).to_vector<std::int32_t>(), ElementsAre(16777217, -5, 3));
  EXPECT_THROW((void)where(condition, i, 0.5), DTypeError);
  EXPECT_THAT(where(condition, 1.0, -1).to_vector<float>(), ElementsAre(1, -1, 1));
  EXPECT_THAT(where(condition, 16777217, 0).to_vector<std::int32_t>(),
              ElementsAre(16777217, 0, 16777217));
  EXPECT_THAT(values(where(condition, make<float>({1}, {1, 1}), 2)), ElementsAre(1, 2, 1));
  EXPECT_THROW((void)where(make<float>({1}, {1}), 1.0, 0.0), DTypeError);
  EXPECT_THROW((void)where(condition, 1LL << 40, 0), DTypeError);
  test::expect_gradients("where else a number",
                         [&](const auto& in) { return where(condition, in[0], 0.5); },
                         {make_wave({3})});
  test::expect_gradients("where a number else",
                         [&](const auto& in) { return where(condition, 0.5, in[0]); },
                         {make_wave({2, 1})});
}

TEST(Compare, TheGradientOfWhereGoesToTheSideTaken) {
  const AnyTensor condition = tensor({true, false, true}, {3}, test::device());
  const auto f = [&](const std::vector<AnyTensor>& in) { return where(condition, in[0], in[1]); };
  test::expect_gradients("where", f, {make_wave({3}), make_wave({3}, 1)});
  test::expect_gradients("where, broadcast", f, {make_wave({2, 1}), make_wave({1}, 1)});
  // log(-1) is NaN and so is its gradient, but it is not taken.
  const AnyTensor x = make<float>({-1, 2}, {2}, test::device().autodiff()).require_grad();
  const AnyTensor y = where(greater(x, 0), x, x * 0.1);
  const AnyTensor seed = make<float>({1, 1}, {2});
  test::expect_near(values(vjp({&y, 1}, {&seed, 1}).of(x)), {0.1, 1}, 1e-6);
}

constexpr std::int32_t least_i32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t most_i32 = std::numeric_limits<std::int32_t>::max();
constexpr std::uint32_t most_u32 = std::numeric_limits<std::uint32_t>::max();

TEST(Compare, CastsBetweenAllDtypes) {
  const AnyTensor x =
      make<float>({-1.7F, 0, 2.5F, 65519, 65520, -1e9F, 3e9F, NAN, inf, -inf, -3, 2147483520,
                   2147483648.F, -2147483648.F, 4294967040.F, 4294967296.F},
                  {16});
  EXPECT_THAT(cast(x, DType::i32).to_vector<std::int32_t>(),
              ElementsAre(-1, 0, 2, 65519, 65520, -1000000000, most_i32, 0, most_i32, least_i32, -3,
                          2147483520, most_i32, least_i32, most_i32, most_i32));
  EXPECT_THAT(cast(x, DType::u32).to_vector<std::uint32_t>(),
              ElementsAre(0, 0, 2, 65519, 65520, 0, 3000000000U, 0, most_u32, 0, 0, 2147483520U,
                          2147483648U, 0, 4294967040U, most_u32));
  const auto truths = cast(x, DType::boolean).to_vector<bool>();
  for (std::size_t i = 0; i < truths.size(); ++i) EXPECT_EQ(truths[i], i != 1);
  const auto h = values(cast(x, DType::f16));
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (i == 7) continue;  // a NaN
    EXPECT_EQ(h[i], static_cast<float>(float16(values(x)[i])));
  }
  EXPECT_TRUE(std::isnan(h[7]));
  // Among other operations, where no cast is stored.
  EXPECT_EQ(values(cast(x * 1, DType::i32) + 0), values(cast(x, DType::i32)));
  EXPECT_EQ(values(cast(cast(x * 1, DType::u32), DType::f32)),
            values(cast(cast(x, DType::u32), DType::f32)));

  const AnyTensor half = make({-1.7F, 65504, inf, -inf, NAN}, {5}, DType::f16);
  EXPECT_THAT(cast(half, DType::i32).to_vector<std::int32_t>(),
              ElementsAre(-1, 65504, most_i32, least_i32, 0));
  EXPECT_THAT(cast(half, DType::u32).to_vector<std::uint32_t>(),
              ElementsAre(0, 65504, most_u32, 0, 0));
  EXPECT_THAT(cast(half, DType::boolean).to_vector<bool>(),
              ElementsAre(true, true, true, true, true));

  const AnyTensor b = tensor({true, false}, {2}, test::device());
  EXPECT_THAT(values(cast(b, DType::f32)), ElementsAre(1, 0));
  EXPECT_THAT(values(cast(b, DType::f16)), ElementsAre(1, 0));
  EXPECT_THAT(values(cast(b, DType::i32)), ElementsAre(1, 0));
  const AnyTensor n = make<std::int32_t>({-1, 3}, {2});
  EXPECT_THAT(cast(n, DType::u32).to_vector<std::uint32_t>(), ElementsAre(0U, 3U));
  EXPECT_THAT(
      cast(make<std::uint32_t>({4000000000U, 3}, {2}), DType::i32).to_vector<std::int32_t>(),
      ElementsAre(most_i32, 3));
  EXPECT_THAT(values(cast(n, DType::f16)), ElementsAre(-1, 3));
  EXPECT_THAT(values(cast(make<std::uint32_t>({4000000000U}, {1}), DType::f32)), ElementsAre(4e9F));
  EXPECT_EQ(test::counted([&] { return cast(n, DType::i32); }).launches, 0U)
      << "the same dtype: the same tensor";
}

TEST(Compare, CastsRoundToNearestOnTheWayToF16) {
  // Halfway between two f16: to even.
  const AnyTensor x =
      make<float>({1 + 1.0F / 2048, 1 + 3.0F / 2048, 1 + 1.1F / 2048, 6e-8F, 2e-8F}, {5});
  const std::vector<float> y = values(cast(x, DType::f16));
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(y[i], static_cast<float>(float16(values(x)[i]))) << i;
}

TEST(Compare, CastsBetweenFloatsAreDifferentiable) {
  const AnyTensor x = make<float>({1.5F, -2}, {2}, test::device().autodiff()).require_grad();
  const AnyTensor y = cast(cast(x, DType::f16), DType::f32);
  const AnyTensor seed = make<float>({3, 4}, {2});
  const AnyTensor g = vjp({&y, 1}, {&seed, 1}).of(x);
  EXPECT_EQ(g.dtype(), DType::f32);
  EXPECT_THAT(values(g), ElementsAre(3, 4));
  EXPECT_FALSE(cast(x, DType::i32).tracked());
  EXPECT_FALSE(greater(x, 0).tracked());
}

TEST(Compare, BoolsCompareWithTheNumbersZeroAndOne) {
  const AnyTensor b = tensor({true, false, true}, {3}, test::device());
  EXPECT_THAT(values(b == 1), ElementsAre(1, 0, 1));
  EXPECT_THAT(values(b != 0), ElementsAre(1, 0, 1));
  EXPECT_THAT(values(where(b, b, 1)), ElementsAre(1, 1, 1));
  EXPECT_THAT(message_of<DTypeError>([&] { test::evaluate(b == 2); }),
              HasSubstr("equal: the number 2 is no bool"));
  EXPECT_THAT(message_of<DTypeError>([&] { test::evaluate(where(b, b, NAN)); }),
              HasSubstr("is no bool"));
}

TEST(Compare, ErrorsNameTheFunctionThatWasCalled) {
  EXPECT_THAT(message_of<ShapeError>([] { (void)greater(make_wave({3}), make_wave({2})); }),
              AllOf(HasSubstr("greater: "), HasSubstr("([3], [2])")));
  EXPECT_THAT(message_of<ShapeError>([] { (void)greater_equal(make_wave({3}), make_wave({2})); }),
              AllOf(HasSubstr("greater_equal: "), HasSubstr("([3], [2])")));
  const AnyTensor i = make<std::int32_t>({1, 2}, {2});
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(0.5 < i); }), StartsWith("less: "));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(0.5 <= i); }), StartsWith("less_equal: "));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(0.5 > i); }), StartsWith("greater: "));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(0.5 >= i); }), StartsWith("greater_equal: "));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(0.5 == i); }), StartsWith("equal: "));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(0.5 != i); }), StartsWith("not_equal: "));
}

TEST(Compare, ANumberBeyondTheOtherSidesDtypeIsRefusedByWhere) {
  const AnyTensor yes = tensor({true}, {1}, test::device());
  const AnyTensor half = make({1}, {1}, DType::f16);
  EXPECT_THAT(message_of<DTypeError>([&] { (void)where(yes, half, 70000); }),
              AllOf(HasSubstr("where: "), HasSubstr("70000"), HasSubstr("f16")));
  EXPECT_THROW((void)where(yes, -70000, half), DTypeError);
  EXPECT_THAT(message_of<DTypeError>([&] { (void)where(yes, 3000000000, 0); }),
              StartsWith("where: "));
  EXPECT_THAT(values(where(yes, INFINITY, half)), ElementsAre(INFINITY));
  EXPECT_THAT(values(where(yes, 65519, half)), ElementsAre(65504));  // the nearest number of f16
}

}  // namespace
}  // namespace kiln
