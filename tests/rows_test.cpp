// Reductions and elementwise operations over the same rows: what becomes one launch, and that it
// computes the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "kiln/kiln.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::values;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

using Function = std::function<AnyTensor(const AnyTensor&)>;

Device lazy() { return test::device().lazy(); }

/// Launches of f(x) on a queue, where x is there already.
std::uint64_t launches(const Function& f, const AnyTensor& x) {
  const AnyTensor there = x.to(lazy());
  lazy().synchronize();
  return test::counted([&] { return f(there); }).launches;
}

void expect_one_launch(const Function& f, const AnyTensor& x) { EXPECT_EQ(launches(f, x), 1U); }

bool on_host() { return test::device().runtime().name() == "cpu"; }

/// Expects what the operations give one by one.
void expect_same(const Function& f, const AnyTensor& x, float tolerance = 2e-6F) {
  const std::vector<float> one_by_one = values(f(x.to(test::device().eager())));
  const std::vector<float> at_once = values(f(x.to(lazy())));
  ASSERT_EQ(at_once.size(), one_by_one.size());
  for (std::size_t i = 0; i < at_once.size(); ++i) {
    if (std::isnan(one_by_one[i])) {
      EXPECT_TRUE(std::isnan(at_once[i])) << i;
    } else if (std::isinf(one_by_one[i])) {
      EXPECT_EQ(at_once[i], one_by_one[i]) << i;
    } else {
      EXPECT_NEAR(at_once[i], one_by_one[i], tolerance * (1 + std::abs(one_by_one[i]))) << i;
    }
  }
}

/// The root of the sum of squares of each row.
struct RowNorm {
  static constexpr std::string_view name = "row_norm";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {{x.shape[0], 1}, x.dtype}; }
  static Reduction reduction(const TensorSpec&) {
    Reduction out{.combine = Combine::norm, .axes = {}};
    out.axes.set(1);
    return out;
  }
};

AnyTensor normalized(const AnyTensor& x) {
  const AnyTensor centred = x - mean(x, -1, true);
  return centred / (max(abs(centred), -1, true) + 1);
}

TEST(Rows, ACompositeOfAUserIsOneLaunch) {
  expect_one_launch(normalized, make_wave({40, 96}));
  expect_one_launch([](const AnyTensor& x) { return x / sum(x * x, 1, true); },
                    make_wave({40, 96}));
  expect_one_launch([](const AnyTensor& x) { return min(x, 1, true) + max(x, 1, true) * x; },
                    make_wave({40, 96}));
}

/// x times a number that the row decides, and times one that the element decides.
struct Leaky {
  static constexpr std::string_view name = "leaky";
  static Expr body(Expr x, Expr row) {
    return x * select(row < 0, -1, 1) * select(x < 0, 0.125, 2);
  }
};

TEST(Rows, ChoiceBetweenLiterals) {
  const auto scaled = [](const AnyTensor& x) {
    const AnyTensor once = apply(Leaky{}, x, max(x, 1, true) - 0.5);
    return apply(Leaky{}, x, sum(once, 1, true)) + once;
  };
  expect_same(scaled, make_wave({30, 24}));
  expect_one_launch(scaled, make_wave({30, 24}));
}

TEST(Rows, WhatAReductionUsedIsUsedAgain) {
  const auto above_mean = [](const AnyTensor& x) {
    const AnyTensor above = x > mean(x, 1, true);
    const AnyTensor number = sum(cast(above, DType::f32), 1, true);
    return where(above, x, number) / number + cast(above, DType::f32);
  };
  const auto three_times = [](const AnyTensor& x) {
    const AnyTensor power = exp(x - max(x, 1, true));
    const AnyTensor share = power / sum(power, 1, true);
    return share * power - sum(share * x, 1, true) * share;
  };
  for (const std::int64_t n : {3, 24, 255, 2500}) {
    for (const Function& f : {Function(above_mean), Function(three_times)}) {
      expect_same(f, make_wave({30, n}));
      if (n < 2500 || on_host()) expect_one_launch(f, make_wave({30, n}));
    }
  }
}

TEST(Rows, OfEveryLength) {
  for (const std::int64_t n : {2, 3, 5, 31, 1001, 2052, 8192})
    expect_same(normalized, make_wave({5, n}));
  for (const std::int64_t n : {4, 32, 100, 1024, 4097})
    expect_same([](const AnyTensor& t) { return softmax(t, 1); }, make_wave({5, n}));
  for (const std::int64_t n : {2, 3, 8, 255}) {  // several rows in a workgroup, or in a tile
    expect_same(normalized, make_wave({3000, n}));
    expect_same([](const AnyTensor& t) { return softmax(t, 1); }, make_wave({3000, n}));
  }
  expect_same(normalized, make_wave({1025, 130}));
}

TEST(Rows, EmptyAndOfOneElement) {
  EXPECT_EQ(normalized(make_wave({4, 1}).to(lazy())).shape(), (Shape{4, 1}));
  EXPECT_THAT(values(softmax(make_wave({4, 1}).to(lazy()), 1)), ElementsAre(1, 1, 1, 1));
  EXPECT_TRUE(values(softmax(make_wave({4, 0}).to(lazy()), 1)).empty());
  EXPECT_TRUE(values(softmax(make_wave({0, 4}).to(lazy()), 1)).empty());
}

/// On webgpu they are not kept: each stage walks them again.
TEST(Rows, OfAnyLength) {
  const auto soft = [](const AnyTensor& x) { return softmax(x, 1); };
  expect_same(normalized, make_wave({2, 40001}));
  expect_same(soft, make_wave({2, 65536}));
  EXPECT_EQ(launches(soft, make_wave({2, 40001})), on_host() ? 3U : 1U);
  const auto weighed = [](const AnyTensor& x) {
    return layer_norm(x, full({x.dim(1)}, 1.5, x.device()), full({x.dim(1)}, 0.5, x.device()));
  };
  expect_same(weighed, make_wave({3, 50000}), 1e-5F);
  const AnyTensor i = cast(make_wave({2, 70001}) * 100, DType::i32);
  expect_same([](const AnyTensor& x) { return x - min(x, 1, true) + max(x, 1, true); }, i);
  expect_same([](const AnyTensor& x) { return softmax(x, 0); }, make_wave({70000}));
  // A norm walks its row twice, which no loop does.
  const auto unit = [](const AnyTensor& x) { return x / apply(RowNorm{}, x); };
  expect_same(unit, make_wave({2, 40000}));
  const AnyTensor many = make_wave({16, 33000});
  expect_same(normalized, many);
  expect_same(soft, many, 1e-5F);
  if (on_host()) expect_one_launch(normalized, many);
}

TEST(Rows, FewOfManyElementsStayApart) {
  const AnyTensor x = make_wave({8, 1 << 18});
  expect_same(normalized, x);
  EXPECT_GT(launches(normalized, x), 1U);
}

TEST(Rows, AlongOtherAxes) {
  for (const int axis : {0, 1, 2}) {
    expect_same([&](const AnyTensor& x) { return softmax(x, axis); }, make_wave({6, 20, 12}));
    expect_same([&](const AnyTensor& x) { return x - mean(x, {axis}, true); },
                make_wave({6, 20, 12}));
  }
  const auto wide = [](const AnyTensor& x) {
    const AnyTensor centred = x - mean(x, 0, true);
    return centred / (max(abs(centred), 0, true) + sqrt(mean(centred * centred, 0, true)));
  };
  expect_same(wide, make_wave({1000, 37}));
  expect_same(wide, make_wave({2000, 3}));
  for (const std::int64_t n : {3, 100, 2049})
    expect_same([](const AnyTensor& x) { return softmax(x, 0); }, make_wave({n, 37}));
  const auto columns = [](const AnyTensor& x) { return softmax(x, 0); };
  const auto middle = [](const AnyTensor& x) { return softmax(x, 1); };
  EXPECT_EQ(launches(columns, make_wave({1024, 40})), on_host() ? 3U : 1U);
  EXPECT_EQ(launches(middle, make_wave({6, 20, 12})), on_host() ? 3U : 1U);
  expect_same([](const AnyTensor& x) { return x - mean(x, {1, 2}, true); }, make_wave({6, 20, 12}));
  expect_same([](const AnyTensor& x) { return x - mean(x, {0, 2}, true); }, make_wave({6, 20, 12}));
}

/// Among operands of one size, any may lie across the rows.
TEST(Rows, LongRowsOfAnOperandThatLiesAcrossStayApartOnTheHost) {
  const AnyTensor x = make_wave({600, 600});
  const AnyTensor y = make_wave({600, 600}, 1).to(lazy());
  const auto with_transposed = [&](const AnyTensor& t) {
    return t / sum(t * t, 1, true) * transpose(y.to(t.device()));
  };
  expect_same(with_transposed, x);
  EXPECT_EQ(launches(with_transposed, x), on_host() ? 2U : 1U);
}

TEST(Rows, OfViewsAndBroadcasts) {
  const AnyTensor x = make_wave({24, 36});
  for (const AnyTensor& view : test::other_views(x)) {
    EXPECT_THAT(values(normalized(view.to(lazy()))),
                Pointwise(FloatNear(1e-5F), values(normalized(x.to(test::device().eager())))));
  }
  expect_same([](const AnyTensor& t) { return normalized(transpose(t)); }, x);
  expect_same([](const AnyTensor& t) { return normalized(slice(t, 1, 1, 34, 3)); }, x);
  const AnyTensor row = make_wave({36}, 1).to(lazy());
  const AnyTensor column = make_wave({24, 1}, 2).to(lazy());
  const auto with_both = [&](const AnyTensor& t) {
    return softmax(t * row.to(t.device()) + column.to(t.device()), 1) * row.to(t.device());
  };
  expect_same(with_both, x);
}

TEST(Rows, InEveryDType) {
  const AnyTensor h = make_wave({20, 64}, 0, DType::f16);
  expect_same(normalized, h, 2e-3F);
  expect_same([](const AnyTensor& x) { return softmax(x, 1); }, h, 2e-3F);
  const AnyTensor i = make<std::int32_t>({1, -5, 7, 2147483647, 1, 3, 0, -2}, {2, 4});
  expect_same([](const AnyTensor& x) { return x - max(x, 1, true); }, i, 0);
  expect_same([](const AnyTensor& x) { return x * sum(x, 1, true); }, i, 0);
  expect_same(
      [](const AnyTensor& x) {
        return cast(x, DType::f32) / 2 + cast(min(x, 1, true), DType::f32);
      },
      i, 0);
  expect_same([](const AnyTensor& x) { return cast(x == max(x, 1, true), DType::f32); }, i, 0);
}

TEST(Rows, NaNAndInfinitiesStayInTheirRow) {
  const float inf = std::numeric_limits<float>::infinity();
  const AnyTensor x = make<float>(
      {1, NAN, 2, 3, inf, 1, 0, 2, -inf, -inf, -inf, -inf, 4, 3, 2, 1, -0.0F, 0.0F, -0.0F, -0.0F},
      {5, 4});
  expect_same(normalized, x);
  expect_same([](const AnyTensor& t) { return softmax(t, 1); }, x);
  expect_same([](const AnyTensor& t) { return t / max(t, 1, true); }, x);
}

TEST(Rows, ExtremesKeepNaNOfBothSignsAndTheSignOfZero) {
  const float inf = std::numeric_limits<float>::infinity();
  const float negative_nan = std::bit_cast<float>(0xffc00001U);
  const AnyTensor x = make<float>(
      {-0.0F, 0.0F, -0.0F, -0.0F, 0,   0,    -0.0F, 0,  -0.0F, -1,           -0.0F, -2, 2,
       1,     3,    inf,   -5,    -2,  -3,   -4,    1,  -2,    negative_nan, 4,     -1, -2,
       -3,    NAN,  1,     2,     NAN, -inf, -inf,  -1, -inf,  -2,           7,     9,  8,
       7,     -1,   -2,    -4,    -3,  5,    -5,    5,  -6},
      {12, 4});
  for (const AnyTensor& rows : {x, concat({x, x, x}, 1), slice(x, 1, 0, 3), cast(x, DType::f16)}) {
    for (const int axis : {0, 1}) {
      const AnyTensor t = axis == 1 ? rows : concat({transpose(rows), transpose(rows)}, 1);
      // The inverse shows the sign of a zero.
      expect_same([&](const AnyTensor& u) { return u + 1 / max(u, axis, true); }, t);
      expect_same([&](const AnyTensor& u) { return u + 1 / min(u, axis, true); }, t);
      expect_same([&](const AnyTensor& u) { return u * 0.5 + max(u, axis, true); }, t);
      expect_same([&](const AnyTensor& u) { return u * 0.5 + min(u, axis, true); }, t);
    }
  }
}

/// Nothing is seen beyond the diagonal.
struct Causal {
  static constexpr std::string_view name = "causal";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return select(at[1] <= at[0], x(at), -1e9);
  }
};

TEST(Rows, KnowTheirCoordinates) {
  const auto attention = [](const AnyTensor& x) { return softmax(apply(Causal{}, x), 1); };
  for (const std::int64_t n : {64, 65}) {
    expect_same(attention, make_wave({64, n}));
    expect_one_launch(attention, make_wave({64, n}));
  }
  expect_same([](const AnyTensor& x) { return softmax(apply(Causal{}, x), 0); },
              make_wave({65, 64}));
  const auto by_place = [](const AnyTensor& x) {
    const AnyTensor column = arange(x.dim(1), DType::f32, x.device());
    const AnyTensor row = unsqueeze(arange(x.dim(0), DType::f32, x.device()), 1);
    return softmax(x * column + row, 1) * (column - row);
  };
  expect_same(by_place, make_wave({12, 30}));
  expect_same(by_place, make_wave({12, 32}));
  const AnyTensor labels = make<std::int32_t>({3, 0, 29, 7}, {4});
  const auto loss = [&](const AnyTensor& x) {
    const AnyTensor logits = x.to(x.device().autodiff()).require_grad();
    return cross_entropy(logits, labels.to(x.device())).backward().of(logits);
  };
  expect_same(loss, make_wave({4, 30}));
}

TEST(Rows, ANormLeavesNoRange) {
  const AnyTensor x =
      make<float>({3e30F, 4e30F, 0, 0, 3e-30F, 4e-30F, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0}, {4, 4});
  const auto by_norm = [](const AnyTensor& t) { return t / apply(RowNorm{}, t); };
  EXPECT_THAT(values(by_norm(slice(x, 0, 0, 3).to(lazy()))),
              Pointwise(FloatNear(1e-6F),
                        std::vector<float>{0.6F, 0.8F, 0, 0, 0.6F, 0.8F, 0, 0, 0.6F, 0.8F, 0, 0}));
  expect_same(by_norm, x);
  expect_one_launch(by_norm, x);
}

TEST(Rows, WhatSomebodyHoldsIsAResult) {
  const AnyTensor x = make_wave({40, 96}).to(lazy());
  lazy().synchronize();
  std::vector<AnyTensor> held;
  const auto spent = test::counted([&] {
    const AnyTensor mean_of = mean(x, 1, true);
    const AnyTensor centred = x - mean_of;
    const AnyTensor deviation = sqrt(mean(centred * centred, 1, true));
    held = {mean_of, centred, deviation, centred / deviation};
    return held.back();
  });
  EXPECT_EQ(spent.launches, 1U);
  const AnyTensor there = x.to(test::device().eager());
  const AnyTensor centred = there - mean(there, 1, true);
  const AnyTensor deviation = sqrt(mean(centred * centred, 1, true));
  EXPECT_THAT(values(held[0]), Pointwise(FloatNear(1e-6F), values(mean(there, 1, true))));
  EXPECT_THAT(values(held[1]), Pointwise(FloatNear(1e-6F), values(centred)));
  EXPECT_THAT(values(held[2]), Pointwise(FloatNear(1e-6F), values(deviation)));
  EXPECT_THAT(values(held[3]), Pointwise(FloatNear(1e-5F), values(centred / deviation)));
}

TEST(Rows, ResultsRepeat) {
  const AnyTensor x = make_wave({300, 1000}).to(lazy());
  const std::vector<float> first = values(normalized(x));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(normalized(x)), first);
}

TEST(Rows, OtherNumbersOfRowsAndLengthsCompileNothing) {
  const auto run = [](std::int64_t rows, std::int64_t n) {
    return values(softmax(make_wave({rows, n}).to(lazy()), 1));
  };
  (void)run(40, 900);
  const auto before = lazy().runtime().counters().compiled;
  for (std::int64_t i = 1; i < 10; ++i)
    EXPECT_EQ(run(40 + i, 900 + 4 * i).size(), static_cast<std::size_t>((40 + i) * (900 + 4 * i)));
  EXPECT_EQ(lazy().runtime().counters().compiled, before);
}

}  // namespace
}  // namespace kiln
