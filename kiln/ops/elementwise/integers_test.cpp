#include "kiln/ops/elementwise/integers.hpp"

#include <limits>

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  const char* name;
  AnyTensor (*run)(const AnyTensor&, const AnyTensor&);
  std::int64_t (*expected)(std::int64_t, std::int64_t);
};

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

bool is_count(std::int64_t n) { return n >= 0 && n <= 31; }

/// In 64 bits; the low 32 of the result are meant.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"floor_div", floor_div, quotient},
      {"mod", mod,
       [](std::int64_t a, std::int64_t b) { return b == 0 ? 0 : a - quotient(a, b) * b; }},
      {"left_shift", left_shift,
       [](std::int64_t a, std::int64_t b) { return is_count(b) ? a * (std::int64_t{1} << b) : 0; }},
      {"right_shift", right_shift,
       [](std::int64_t a, std::int64_t b) { return a >> (is_count(b) ? b : 33); }},
      {"bit_and", bit_and, [](std::int64_t a, std::int64_t b) { return a & b; }},
      {"bit_or", bit_or, [](std::int64_t a, std::int64_t b) { return a | b; }},
      {"bit_xor", bit_xor, [](std::int64_t a, std::int64_t b) { return a ^ b; }},
      {"a / b", div, [](std::int64_t a, std::int64_t b) { return b == 0 ? a : a / b; }},
  };
  return all;
}

template <class T>
void expect_every_pair(const std::vector<T>& numbers) {
  const auto n = static_cast<std::int64_t>(numbers.size());
  const AnyTensor a = make<T>(numbers, {n, 1});
  const AnyTensor b = make<T>(numbers, {n});
  for (const Case& c : cases()) {
    const std::vector<T> got = c.run(a, b).template to_vector<T>();
    std::size_t at = 0;
    for (const T x : numbers) {
      for (const T y : numbers)
        EXPECT_EQ(got[at++], static_cast<T>(c.expected(x, y))) << c.name << " " << x << " " << y;
    }
  }
}

TEST(Integers, EveryPairHasItsResult) {
  expect_every_pair<std::int32_t>(
      {0,     1,          -1,         2,           -2,
       3,     -3,         7,          -7,          8,
       31,    32,         33,         1000,        -1000,
       65537, 2147483646, 2147483647, -2147483647, std::numeric_limits<std::int32_t>::min()});
  expect_every_pair<std::uint32_t>({0, 1, 2, 3, 7, 8, 31, 32, 33, 1000, 65537, 2147483647,
                                    2147483648U, 4294967294U, 4294967295U});
}

TEST(Integers, NumbersStandOnEitherSide) {
  const AnyTensor x = make<std::int32_t>({-7, 0, 9}, {3});
  EXPECT_THAT(floor_div(x, 2).to_vector<std::int32_t>(), ElementsAre(-4, 0, 4));
  EXPECT_THAT(floor_div(100, x).to_vector<std::int32_t>(), ElementsAre(-15, 100, 11));
  EXPECT_THAT(mod(x, -4).to_vector<std::int32_t>(), ElementsAre(-3, 0, -3));
  EXPECT_THAT(mod(20, x).to_vector<std::int32_t>(), ElementsAre(-1, 0, 2));
  EXPECT_THAT((x << 1).to_vector<std::int32_t>(), ElementsAre(-14, 0, 18));
  EXPECT_THAT((1 << x).to_vector<std::int32_t>(), ElementsAre(0, 1, 512));
  EXPECT_THAT((x >> 40).to_vector<std::int32_t>(), ElementsAre(-1, 0, 0));
  EXPECT_THAT((-1 >> x).to_vector<std::int32_t>(), ElementsAre(-1, -1, -1));
  EXPECT_THAT((x & 6).to_vector<std::int32_t>(), ElementsAre(0, 0, 0));
  EXPECT_THAT((1 | x).to_vector<std::int32_t>(), ElementsAre(-7, 1, 9));
  EXPECT_THAT((x ^ -1).to_vector<std::int32_t>(), ElementsAre(6, -1, -10));
  EXPECT_THAT((~x).to_vector<std::int32_t>(), ElementsAre(6, -1, -10));
  EXPECT_THAT((~make<std::uint32_t>({5}, {1})).to_vector<std::uint32_t>(),
              ElementsAre(4294967290U));
  EXPECT_THAT(mod(x, 0).to_vector<std::int32_t>(), ElementsAre(0, 0, 0));
  EXPECT_THAT((x / 0).to_vector<std::int32_t>(), ElementsAre(-7, 0, 9));
}

/// With literals, which a compiler of WGSL would refuse as divisors and counts.
struct Literals {
  static constexpr std::string_view name = "literals";
  int which;
  Expr body(Expr x) const {
    switch (which) {
      case 0:
        return x / 0;
      case 1:
        return floor_div(x, 0);
      case 2:
        return mod(x, 0);
      case 3:
        return x << 40;
      case 4:
        return x >> 40;
      case 5:
        return 8 / x + floor_div(8, x) + mod(8, x);
      default:
        return (7 / (x - x)) + mod(x, 4) * 100;
    }
  }
};

TEST(Integers, LiteralsHaveTheSameResults) {
  const auto of = [](int which) {
    return apply(Literals{which}, make<std::int32_t>({-6, 5}, {2})).to_vector<std::int32_t>();
  };
  EXPECT_THAT(of(0), ElementsAre(-6, 5));
  EXPECT_THAT(of(1), ElementsAre(-6, 5));
  EXPECT_THAT(of(2), ElementsAre(0, 0));
  EXPECT_THAT(of(3), ElementsAre(0, 0));
  EXPECT_THAT(of(4), ElementsAre(-1, 0));
  EXPECT_THAT(of(5), ElementsAre(-1 - 2 - 4, 1 + 1 + 3));
  EXPECT_THAT(of(6), ElementsAre(207, 107));
  const AnyTensor u = make<std::uint32_t>({6, 4294967295U}, {2});
  for (const int which : {0, 1})
    EXPECT_THAT(apply(Literals{which}, u).to_vector<std::uint32_t>(), ElementsAre(6U, 4294967295U));
  for (const int which : {2, 3, 4})
    EXPECT_THAT(apply(Literals{which}, u).to_vector<std::uint32_t>(), ElementsAre(0U, 0U));
}

TEST(Integers, FuseLikeOtherElementwiseOperations) {
  const AnyTensor x = make<std::int32_t>({-9, 4, 13}, {3});
  const auto mixed = [&] { return (mod(x * 3, 5) << 2) ^ (floor_div(x, 2) + 1); };
  EXPECT_THAT(mixed().to_vector<std::int32_t>(),
              ElementsAre((3 << 2) ^ -4, (2 << 2) ^ 3, (4 << 2) ^ 7));
  EXPECT_EQ(test::counted(mixed).launches, default_device().is_eager() ? 6U : 1U);
}

TEST(Integers, OtherDTypesAreRefused) {
  const AnyTensor f = make<float>({1}, {1});
  const AnyTensor i = make<std::int32_t>({1}, {1});
  EXPECT_THAT(message_of<DTypeError>([&] { (void)floor_div(f, 2); }),
              AllOf(HasSubstr("floor_div"), HasSubstr("i32 or u32"), HasSubstr("f32")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(i << 0.5); }),
              AllOf(HasSubstr("left_shift"), HasSubstr("0.5")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(i & make<std::uint32_t>({1}, {1})); }),
              AllOf(HasSubstr("bit_and"), HasSubstr("i32"), HasSubstr("u32")));
  EXPECT_THROW((void)~(f < 2), DTypeError);
  EXPECT_THROW((void)mod(make<std::uint32_t>({1}, {1}), -1), DTypeError);
}

// Along a row the divisor is one number, which lies where the quotients are written.
TEST(Integers, RowsDividedByAComputedColumn) {
  constexpr std::int64_t n = 1024;
  std::vector<std::int32_t> numbers(4 * n);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
  const AnyTensor x = make(numbers, {4, n});
  const AnyTensor column = make<std::int32_t>({1, 2, 3, 6}, {4, 1});
  const std::vector<std::int32_t> got =
      (floor_div(x, column + 1) * 2 + mod(x, column + 2) * 3).to_vector<std::int32_t>();
  const std::vector<std::int32_t> swapped =
      (floor_div(column + 100, x + 1) * 2).to_vector<std::int32_t>();
  const std::array<std::int32_t, 4> columns{1, 2, 3, 6};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int32_t c = columns[i / n];
    ASSERT_EQ(got[i], numbers[i] / (c + 1) * 2 + numbers[i] % (c + 2) * 3) << i;
    ASSERT_EQ(swapped[i], (c + 100) / (numbers[i] + 1) * 2) << i;
  }
}

}  // namespace
}  // namespace kiln
