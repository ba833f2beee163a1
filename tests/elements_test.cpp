// Operations that say where their elements come from: values, what is fused, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "kiln/fusion/inspect.hpp"
#include "kiln/kiln.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/runtime/webgpu/portable_test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Device lazy() { return test::device().lazy(); }

/// 0, 1, 2, ... in that dtype.
AnyTensor counted(const Shape& shape, DType dtype = DType::f32) {
  std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return cast(make(numbers, shape, lazy()), dtype);
}

std::vector<float> iota(std::int64_t n) { return values(counted({n})); }

struct Flip {
  static constexpr std::string_view name = "flip";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;

  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, at.size(axis) - 1 - at[axis]));
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) const {
    grads.slots[0].set(apply(*this, grad));
  }
};
static_assert(Extension<Flip>);

struct Roll {
  static constexpr std::string_view name = "roll";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Param by;
  int axis;

  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, mod(at[axis] - by, at.size(axis))));
  }
};
static_assert(Extension<Roll>);

struct Pad {
  static constexpr std::string_view name = "pad";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  int axis;
  int before;
  int after;
  Param fill;

  TensorSpec output(const TensorSpec& x) const {
    TensorSpec out = x;
    out.shape[axis] += before + after;
    return out;
  }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, at[axis] - at.number(before))).or_else(fill);
  }
};
static_assert(Extension<Pad>);

struct Tril {
  static constexpr std::string_view name = "tril";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return select(at[-1] <= at[-2], x(at), 0);
  }
};
static_assert(Extension<Tril>);

struct OneHot {
  static constexpr std::string_view name = "one_hot";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int classes;
  TensorSpec output(const TensorSpec& x) const {
    TensorSpec out{x.shape, DType::f32};
    out.shape.push_back(classes);
    return out;
  }
  static Expr element(const At& at, const Elements& x) {
    return select(cast(x(at.without(-1)), DType::i32) == at[-1], 1, 0);
  }
};
static_assert(Extension<OneHot>);

/// Rows of `table` by numbers; 0 for a number that names no row.
struct Gather {
  static constexpr std::string_view name = "gather_rows";
  static constexpr std::array inputs = {"table", "rows"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& table, const TensorSpec& rows) {
    return {{rows.shape[0], table.shape[1]}, table.dtype};
  }
  static Expr element(const At& at, const Elements& table, const Elements& rows) {
    return table(rows(at[0]), at[1]);
  }
};
static_assert(Extension<Gather>);

/// [channels, height, width] to [channels * kernel^2, windows].
struct Im2col {
  static constexpr std::string_view name = "im2col";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int kernel;
  int pad;

  TensorSpec output(const TensorSpec& x) const {
    const std::int64_t less = 2 * pad - kernel + 1;
    return {{x.shape[0] * kernel * kernel, (x.shape[1] + less) * (x.shape[2] + less)}, x.dtype};
  }
  Expr element(const At& at, const Elements& x) const {
    const Expr k = at.number(kernel);
    const Expr wide = x.size(2) + at.number(2 * pad - kernel + 1);
    const Expr row = floor_div(at[1], wide) + mod(floor_div(at[0], k), k) - at.number(pad);
    const Expr col = mod(at[1], wide) + mod(at[0], k) - at.number(pad);
    return x(floor_div(at[0], k * k), row, col);
  }
};
static_assert(Extension<Im2col>);

struct Concat {
  static constexpr std::string_view name = "concat_two";
  static constexpr std::array inputs = {"a", "b"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  int axis;
  TensorSpec output(const TensorSpec& a, const TensorSpec& b) const {
    TensorSpec out = a;
    out.shape[axis] += b.shape[axis];
    return out;
  }
  Expr element(const At& at, const Elements& a, const Elements& b) const {
    return a(at).or_else(b(at.with(axis, at[axis] - a.size(axis))));
  }
};
static_assert(Extension<Concat>);

struct Arange {
  static constexpr std::string_view name = "arange_by_rule";
  static constexpr std::array<std::string_view, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  std::int64_t count;
  Param start;
  Param step;
  TensorSpec output() const { return {{count}, DType::f32}; }
  Expr element(const At& at) const { return start + step * cast(at[0], DType::f32); }
};
static_assert(Extension<Arange>);

/// The number of each element, and of the one that its coordinates name.
struct Position {
  static constexpr std::string_view name = "position";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {x.shape, DType::u32}; }
  static Expr element(const At& at, const Elements&) { return at.position(); }
};

/// x at every second row and the mean of two neighbours: reads in place and elsewhere.
struct Neighbours {
  static constexpr std::string_view name = "neighbours";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return x(at.with(-1, at[-1] - 1)) + x(at) * 2 + x(at.with(-1, at[-1] + 1));
  }
};

using In = const std::vector<AnyTensor>&;

template <class F>
void expect_same_as_eager(F f, std::vector<AnyTensor> in, const std::string& what = {}) {
  const std::vector<float> fused = values(f(in));
  for (AnyTensor& t : in) t = t.to(test::device().eager());
  test::expect_near(fused, test::doubles(values(f(in))), 2e-6, what);
}

/// What it takes to compute the result of `f`, nothing else being queued.
template <class F>
DrainReport drained(F f, const std::vector<AnyTensor>& in) {
  lazy().flush();
  const AnyTensor out = f(in);
  DrainReport report = inspect(lazy());
  (void)values(out);
  return report;
}

TEST(Elements, FlipReadsFromTheOtherEnd) {
  const AnyTensor x = counted({2, 3});
  EXPECT_THAT(values(apply(Flip{1}, x)), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(values(apply(Flip{0}, x)), ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_THAT(values(apply(Flip{-2}, x)), ElementsAre(3, 4, 5, 0, 1, 2));
}

TEST(Elements, EveryDtypeIsRead) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i32, DType::u32}) {
    EXPECT_THAT(values(apply(Flip{0}, counted({5}, dtype))), ElementsAre(4, 3, 2, 1, 0))
        << to_string(dtype);
    EXPECT_THAT(values(apply(Pad{0, 1, 2, 7}, counted({3}, dtype))), ElementsAre(7, 0, 1, 2, 7, 7))
        << to_string(dtype);
  }
  EXPECT_THAT(values(apply(Flip{0}, counted({3}) > 1.0)), ElementsAre(1, 0, 0));
  EXPECT_THAT(values(apply(Pad{0, 1, 1, 1}, counted({3}) > 1.0)), ElementsAre(1, 0, 0, 1, 1));
}

TEST(Elements, RollTakesCoordinatesModuloTheSize) {
  const AnyTensor x = counted({2, 4});
  EXPECT_THAT(values(apply(Roll{1, 1}, x)), ElementsAre(3, 0, 1, 2, 7, 4, 5, 6));
  EXPECT_THAT(values(apply(Roll{-5, 1}, x)), ElementsAre(1, 2, 3, 0, 5, 6, 7, 4));
}

TEST(Elements, PadFillsWhatIsOutside) {
  EXPECT_THAT(values(apply(Pad{1, 1, 0, -1}, counted({2, 2}))), ElementsAre(-1, 0, 1, -1, 2, 3));
  EXPECT_THAT(values(apply(Pad{0, 0, 1, std::numeric_limits<double>::infinity()}, counted({1}))),
              ElementsAre(0, std::numeric_limits<float>::infinity()));
}

TEST(Elements, TrilAndOneHotCompareCoordinates) {
  EXPECT_THAT(values(apply(Tril{}, counted({3, 3}))), ElementsAre(0, 0, 0, 3, 4, 0, 6, 7, 8));
  EXPECT_THAT(values(apply(OneHot{3}, counted({2}, DType::u32))), ElementsAre(1, 0, 0, 0, 1, 0));
}

TEST(Elements, GatherGivesZeroOutsideOnBothSides) {
  const AnyTensor table = counted({3, 2}) + 1.0;
  const AnyTensor rows = make<std::int32_t>({2, -1, 3, 0, std::numeric_limits<std::int32_t>::min(),
                                             std::numeric_limits<std::int32_t>::max()},
                                            {6}, lazy());
  EXPECT_THAT(values(apply(Gather{}, table, rows)),
              ElementsAre(5, 6, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0));
}

TEST(Elements, Im2colIsAConvolution) {
  const AnyTensor x = make_wave({2, 4, 5}, 3, DType::f32, lazy());
  const AnyTensor w = make_wave({3, 18}, 5, DType::f32, lazy());
  const std::vector<float> result = values(matmul(w, apply(Im2col{3, 1}, x)));
  const std::vector<float> image = values(x);
  const std::vector<float> weights = values(w);
  std::vector<double> expected;
  for (int o = 0; o < 3; ++o) {
    for (int row = 0; row < 4; ++row) {
      for (int col = 0; col < 5; ++col) {
        double sum = 0;
        for (int k = 0; k < 18; ++k) {
          const int r = row + k / 3 % 3 - 1;
          const int c = col + k % 3 - 1;
          if (r < 0 || r >= 4 || c < 0 || c >= 5) continue;
          sum += double{weights[static_cast<std::size_t>(o * 18 + k)]} *
                 double{image[static_cast<std::size_t>((k / 9 * 4 + r) * 5 + c)]};
        }
        expected.push_back(sum);
      }
    }
  }
  test::expect_near(result, expected, 1e-5);
}

TEST(Elements, ConcatSelectsAmongOperands) {
  EXPECT_THAT(values(apply(Concat{1}, counted({2, 2}), counted({2, 1}) + 10.0)),
              ElementsAre(0, 1, 10, 2, 3, 11));
  EXPECT_THAT(values(apply(Concat{0}, counted({1, 2}), counted({2, 2}) + 10.0)),
              ElementsAre(0, 1, 10, 11, 12, 13));
}

TEST(Elements, ARuleWithoutInputsIsAppliedToADevice) {
  EXPECT_THAT(values(apply(Arange{4, 1, 0.5}, lazy())), ElementsAre(1, 1.5, 2, 2.5));
  const AnyTensor twice = apply(Arange{3, 0, 1}, lazy()) * 2.0;
  EXPECT_THAT(values(twice), ElementsAre(0, 2, 4));
}

TEST(Elements, PositionsCountInDenseOrder) {
  EXPECT_EQ(values(apply(Position{}, counted({3, 5, 2}))), iota(30));
  EXPECT_EQ(values(apply(Position{}, transpose(counted({4, 8})))), iota(32));
}

TEST(Elements, StridedAndBroadcastOperandsAreReadWhereTheyLie) {
  const AnyTensor x = counted({4, 6});
  const std::vector<AnyTensor> views{transpose(x), slice(x, 1, 1, 6, 2), slice(x, 0, 1, 3),
                                     broadcast_to(slice(x, 0, 2, 3), {5, 6}),
                                     broadcast_to(reshape(slice(x, 1, 0, 1), {4, 1}), {4, 3})};
  for (const AnyTensor& view : views) {
    std::vector<float> expected = values(view);
    const auto inner = static_cast<std::ptrdiff_t>(view.dim(1));
    for (auto row = expected.begin(); row != expected.end(); row += inner)
      std::reverse(row, row + inner);
    EXPECT_EQ(values(apply(Flip{1}, view)), expected) << to_string(view.value().layout());
    std::vector<float> whole = values(view);
    std::reverse(whole.begin(), whole.end());
    EXPECT_EQ(values(apply(Flip{0}, apply(Flip{1}, view))), whole);
  }
}

struct Scalar {
  static constexpr std::string_view name = "scalar";
  static constexpr std::array inputs = {"x", "s"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static Expr element(const At& at, const Elements& x, const Elements& s) { return x(at) * s(); }
};

TEST(Elements, AnyRankIsTaken) {
  const AnyTensor s = make<float>({3}, {}, lazy());
  EXPECT_THAT(values(apply(Scalar{}, s, s)), ElementsAre(9));
  EXPECT_THAT(values(apply(Scalar{}, counted({3}), s)), ElementsAre(0, 3, 6));
  const Shape deepest{2, 1, 2, 1, 2, 1, 2, 2};
  for (int axis = 0; axis < 8; ++axis) {
    const AnyTensor x = make_wave(deepest, axis, DType::f32, lazy());
    std::vector<float> expected = values(x);
    AnyTensor flipped = x;
    for (int a = 0; a < 8; ++a) flipped = apply(Flip{a}, flipped);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(values(flipped), expected);
  }
}

TEST(Elements, SizesOfZeroGiveWhatIsOutside) {
  EXPECT_EQ(values(apply(Flip{0}, counted({0, 3}))).size(), 0U);
  EXPECT_THAT(values(apply(Pad{0, 1, 1, 5}, counted({0}))), ElementsAre(5, 5));
  EXPECT_THAT(values(apply(Gather{}, counted({0, 2}), make<std::int32_t>({0, 1}, {2}, lazy()))),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(values(apply(Concat{0}, counted({0, 2}), counted({1, 2}))), ElementsAre(0, 1));
  EXPECT_THAT(values(apply(Concat{0}, counted({1, 2}), counted({0, 2}))), ElementsAre(0, 1));
}

TEST(Elements, ProducersAndConsumersAreOneLaunch) {
  if (lazy().is_eager()) GTEST_SKIP() << "nothing is queued";
  const std::vector in{counted({6, 8}), counted({6, 8}) + 1.0, counted({8})};
  const std::vector<AnyTensor (*)(In)> all{
      [](In t) { return tanh(apply(Flip{1}, relu(t[0]) * t[1])) + t[1]; },
      [](In t) { return apply(Flip{0}, apply(Flip{1}, t[0] + 1.0)) * 2.0; },
      [](In t) { return apply(Neighbours{}, apply(Flip{0}, t[0]) - t[1]); },
      [](In t) { return apply(Pad{0, 1, 1, 2}, t[0] * t[2]) + 1.0; },
      [](In t) { return apply(Flip{0}, transpose(t[0] * t[2])) - 1.0; },
      [](In t) { return apply(Concat{0}, t[0] * 2.0, exp(t[2] / 8.0) + t[1]) * 0.5; },
      [](In t) { return apply(Tril{}, abs(t[0])) * apply(Flip{0}, t[1]); },
      [](In t) {
        return apply(Gather{}, t[0] * 2.0, cast(slice(t[2], 0, 0, 3), DType::i32)) + 1.0;
      },
      [](In t) { return cast(apply(Flip{1}, cast(t[0], DType::f16)), DType::f32) + t[1]; }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const DrainReport report = drained(all[i], in);
    EXPECT_EQ(report.launches, 1U) << i << "\n" << to_table(report);
    expect_same_as_eager(all[i], in, std::to_string(i));
  }
}

TEST(Elements, PlacesAreFoundThroughViews) {
  if (lazy().is_eager()) GTEST_SKIP() << "nothing is queued";
  const std::vector in{counted({6, 8}), counted({8, 6}) + 1.0, counted({6, 1})};
  const std::vector<AnyTensor (*)(In)> all{
      [](In t) { return transpose(apply(Tril{}, t[0] + 1.0)) * t[1]; },
      [](In t) { return slice(apply(Tril{}, t[0] + 1.0), 1, 2, 5) * 2.0; },
      [](In t) { return apply(Flip{0}, slice(apply(Tril{}, t[0]), 0, 2, 5)) + 1.0; },
      [](In t) { return apply(Flip{1}, transpose(apply(Roll{2, 1}, t[0]))) - t[1]; },
      [](In t) { return broadcast_to(apply(Flip{0}, t[2]), {6, 8}) + t[0]; },
      [](In t) { return broadcast_to(slice(apply(Tril{}, t[0]), 0, 3, 4), {6, 8}) + t[0]; },
      [](In t) { return apply(Pad{1, 2, 1, 9}, broadcast_to(apply(Flip{0}, t[2]), {6, 8})); },
      [](In t) { return apply(Neighbours{}, transpose(slice(apply(Flip{0}, t[0]), 0, 1, 5))); }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const DrainReport report = drained(all[i], in);
    EXPECT_EQ(report.launches, 1U) << i << "\n" << to_table(report);
    expect_same_as_eager(all[i], in, std::to_string(i));
  }
}

TEST(Elements, WhatCannotBeOneLaunchIsRightAllTheSame) {
  const std::vector in{counted({6, 8}), counted({6, 8}) + 1.0, counted({8})};
  const std::vector<AnyTensor (*)(In)> all{
      [](In t) { return reshape(apply(Tril{}, t[0]), {48}) + reshape(t[1], {48}); },
      [](In t) { return apply(Flip{0}, reshape(apply(Flip{1}, t[0]), {48})); },
      [](In t) { return sum(apply(Flip{1}, t[0]), {1}); },
      [](In t) { return sum(apply(Tril{}, t[0]), {0}); },
      [](In t) { return matmul(apply(Flip{0}, t[0]), transpose(apply(Tril{}, t[1]))); },
      [](In t) { return apply(Tril{}, matmul(t[0], transpose(t[1]))) * 0.5; },
      [](In t) { return apply(Flip{0}, sum(t[0], {1}) + 1.0); },
      [](In t) { return apply(Neighbours{}, sum(t[0], {1}, true) + t[0]); },
      [](In t) { return apply(Flip{1}, matmul(t[0], transpose(t[1]))) + 1.0; },
      [](In t) { return reshape(apply(Tril{}, t[0] * 2.0) + 1.0, {6, 2, 4}) + 1.0; },
      [](In t) { return cast(apply(Position{}, transpose(t[0])), DType::f32) + transpose(t[1]); },
      [](In t) { return apply(Flip{0}, cast(apply(Position{}, t[0]), DType::f32)); },
      [](In t) { return apply(Im2col{2, 1}, reshape(t[0] + 1.0, {2, 3, 8})) * 2.0; }};
  for (std::size_t i = 0; i < all.size(); ++i) expect_same_as_eager(all[i], in, std::to_string(i));
}

TEST(Elements, StoresOfKernelsTakeWhatKnowsItsPlace) {
  if (lazy().is_eager()) GTEST_SKIP() << "nothing is queued";
  const std::vector in{make_wave({4, 6}, 1, DType::f32, lazy()),
                       make_wave({6, 4}, 2, DType::f32, lazy())};
  const auto masked = [](In t) { return apply(Tril{}, matmul(t[0], t[1])) + 1.0; };
  EXPECT_EQ(drained(masked, in).launches, 1U);
  expect_same_as_eager(masked, in);
  const auto flipped = [](In t) {
    return matmul(t[0], t[1]) + apply(Flip{1}, slice(t[0], 1, 0, 4));
  };
  EXPECT_EQ(drained(flipped, in).launches, 1U);
  expect_same_as_eager(flipped, in);
  const auto reduced = [](In t) { return sum(t[0], {1}) * apply(Flip{0}, slice(t[1], 0, 0, 1)); };
  expect_same_as_eager(reduced, in);
}

/// [h, w] as windows: [h / size, w / size, size, size].
struct Windows {
  static constexpr std::string_view name = "windows";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int size;
  TensorSpec output(const TensorSpec& x) const {
    return {{x.shape[0] / size, x.shape[1] / size, size, size}, x.dtype};
  }
  Expr element(const At& at, const Elements& x) const {
    return x(at[0] * at.number(size) + at[2], at[1] * at.number(size) + at[3]);
  }
};

TEST(Elements, ReductionsComputeThemAsTheyLoad) {
  const std::vector in{make_wave({12, 16}, 4, DType::f32, lazy()),
                       make_wave({16}, 5, DType::f32, lazy())};
  const std::vector<AnyTensor (*)(In)> all{
      [](In t) { return max(apply(Windows{2}, t[0]), {2, 3}); },
      [](In t) { return mean(apply(Windows{4}, relu(t[0]) * t[1]), {2, 3}) + 1.0; },
      [](In t) { return sum(apply(Windows{3}, t[0]), {0, 3}); },
      [](In t) { return sum(apply(Windows{4}, t[0]), {1, 2}, true); },
      [](In t) { return sum(apply(Tril{}, t[0]), {0}); },
      [](In t) { return sum(apply(Tril{}, t[0]), {1}); },
      [](In t) { return sum(apply(Tril{}, t[0]) * t[1]); },
      [](In t) { return argmax(apply(Flip{1}, t[0]), 1); },
      [](In t) { return argmin(apply(Tril{}, t[0]) - t[1], 0); },
      [](In t) { return min(apply(Neighbours{}, t[0]), {1}); },
      [](In t) { return sum(transpose(apply(Flip{0}, t[0])), {0}); },
      [](In t) { return sum(apply(Im2col{3, 1}, reshape(t[0], {2, 6, 16})), {0}); },
      [](In t) { return cast(sum(apply(Roll{3, 0}, cast(t[0], DType::f16)), {1}), DType::f32); }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!lazy().is_eager()) {
      const DrainReport report = drained(all[i], in);
      EXPECT_EQ(report.launches, 1U) << i << "\n" << to_table(report);
    }
    expect_same_as_eager(all[i], in, std::to_string(i));
  }
}

TEST(Elements, LongReductionsOfThemAreMadeInParts) {
  const std::vector in{make_wave({3, 40000}, 4, DType::f32, lazy()),
                       make_wave({30000, 8}, 4, DType::f32, lazy())};
  const std::vector<AnyTensor (*)(In)> all{
      [](In t) { return sum(apply(Flip{1}, t[0] + 0.25), {1}); },
      [](In t) { return max(apply(Tril{}, t[0] - 2.0), {1}); },
      [](In t) { return sum(apply(Tril{}, t[1] + 0.25), {0}); },
      [](In t) { return sum(apply(Flip{1}, t[1] + 0.25), {0}) * 2.0; }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<float> fused = values(all[i](in));
    std::vector<AnyTensor> eager;
    for (const AnyTensor& t : in) eager.push_back(t.to(test::device().eager()));
    test::expect_near(fused, test::doubles(values(all[i](eager))), 2e-5, std::to_string(i));
  }
}

TEST(Elements, AResultNeverOverwritesWhatIsReadElsewhere) {
  AnyTensor x = counted({64, 64}) + 0.0;
  lazy().flush();
  for (int i = 0; i < 3; ++i) {
    x = apply(Flip{0}, x) + 1.0;
    lazy().flush();
  }
  const std::vector<float> after = values(x);
  std::vector<float> expected;
  for (int row = 63; row >= 0; --row) {
    for (int col = 0; col < 64; ++col) expected.push_back(static_cast<float>(row * 64 + col + 3));
  }
  EXPECT_EQ(after, expected);
  AnyTensor y = counted({256}) * 1.0;
  lazy().flush();
  y = y + apply(Neighbours{}, y);
  lazy().flush();
  EXPECT_EQ(values(y)[10], 10 + 40);
}

TEST(Elements, ANewSizeCompilesNothing) {
  const auto run = [](std::int64_t rows, std::int64_t cols) {
    const AnyTensor x = counted({rows, cols});
    return apply(Flip{0}, apply(Pad{1, static_cast<int>(rows), 3, 1.5}, x * 2.0) + 1.0);
  };
  (void)values(run(4, 8));
  (void)values(run(5, 7));
  const auto spent = test::counted([&] {
    (void)values(run(12, 16));
    (void)values(run(9, 9));
    (void)values(run(30, 5));
    (void)values(run(8, 8));
  });
  EXPECT_EQ(spent.compiled, 0U);
}

TEST(Elements, WhatNoResultReadsStaysOut) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const AnyTensor x = make<float>({1, nan, 3, nan}, {4}, lazy());
  const AnyTensor rows = make<std::int32_t>({2, 0, -1}, {3}, lazy());
  EXPECT_THAT(values(apply(Gather{}, reshape(x * 2.0, {4, 1}), rows)), ElementsAre(6, 2, 0));
  const AnyTensor upper = make<float>({1, nan, 3, 4}, {2, 2}, lazy());
  EXPECT_THAT(values(apply(Tril{}, log(upper) * 0.0 + upper)), ElementsAre(1, 0, 3, 4));
}

struct Divided {
  static constexpr std::string_view name = "divided";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param by;
  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const { return x(floor_div(at[0], by)); }
};

TEST(Elements, IntegerDivisionByZeroGivesTheDividend) {
  EXPECT_THAT(values(apply(Divided{0}, counted({3}))), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(apply(Divided{2}, counted({3}))), ElementsAre(0, 0, 1));
  EXPECT_THAT(values(apply(Divided{0}, counted({3}) * 2.0)), ElementsAre(0, 2, 4));
}

TEST(Elements, AGradientByHandIsTaken) {
  const Device device = test::device().autodiff();
  const AnyTensor x = make<float>({1, 2, 3}, {3}, device).require_grad();
  const AnyTensor w = make<float>({10, 20, 30}, {3}, device);
  EXPECT_THAT(values(sum(apply(Flip{0}, x) * w).backward().of(x)), ElementsAre(30, 20, 10));
}

/// Products of a column, a row and a number: each is summed over what it does not name.
struct Outer {
  static constexpr std::string_view name = "outer";
  static constexpr std::array inputs = {"a", "b", "s"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& a, const TensorSpec& b, const TensorSpec&) {
    return {{a.shape[0], b.shape[0]}, a.dtype};
  }
  static Expr element(const At& at, const Elements& a, const Elements& b, const Elements& s) {
    return sin(a(at[0])) * b(at[1]) + a(at[0]) * s();
  }
};
static_assert(Extension<Outer>);

/// Every second element, from behind, and the last row alone.
struct Strided {
  static constexpr std::string_view name = "strided";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {{x.shape[1] / 2}, x.dtype}; }
  static Expr element(const At& at, const Elements& x) {
    const Expr last = x.size(0) - 1;
    return exp(x(last, x.size(1) - 1 - 2 * at[0])) * x(0, at[0] * 2);
  }
};
static_assert(Extension<Strided>);

struct Repeated {
  static constexpr std::string_view name = "repeated";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {{x.shape[0] * 2}, x.dtype}; }
  static Expr element(const At& at, const Elements& x) { return x(floor_div(at[0], 2)); }
};
static_assert(Extension<Repeated>);

/// x(at[1], at[0]) * x(at): reads of one operand along exchanged axes.
struct WithTransposed {
  static constexpr std::string_view name = "with_transposed";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return x(at[1], at[0]) * x(at.with(0, at[0] + 1)).or_else(0.5) + cast(at[0], DType::f32);
  }
};
static_assert(Extension<WithTransposed>);

struct DerivedFlip {
  static constexpr std::string_view name = "derived_flip";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  int axis;
  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, at.size(axis) - 1 - at[axis]));
  }
};
static_assert(Extension<DerivedFlip>);

TEST(Elements, GradientsFollowFromTheRule) {
  const Device device = test::device().autodiff();
  const auto wave = [&](const Shape& shape, int seed) {
    return make_wave(shape, seed, DType::f32, device);
  };
  const AnyTensor square = wave({5, 5}, 1);
  test::expect_gradients("flip", [](In t) { return exp(apply(DerivedFlip{1}, t[0])); },
                         {wave({3, 4}, 1)});
  test::expect_gradients("roll", [](In t) { return exp(apply(Roll{7, 0}, t[0])); },
                         {wave({3, 4}, 2)});
  test::expect_gradients("pad", [](In t) { return exp(apply(Pad{1, 2, 1, 3}, t[0])); },
                         {wave({3, 4}, 3)});
  test::expect_gradients("crop", [](In t) { return exp(apply(Pad{1, -2, -1, 3}, t[0])); },
                         {wave({3, 4}, 3)});
  test::expect_gradients("tril", [](In t) { return exp(apply(Tril{}, t[0])); }, {square});
  test::expect_gradients("concat", [](In t) { return exp(apply(Concat{1}, t[0], t[1])); },
                         {wave({3, 2}, 4), wave({3, 4}, 5)});
  test::expect_gradients("neighbours", [](In t) { return exp(apply(Neighbours{}, t[0])); },
                         {wave({3, 5}, 6)});
  test::expect_gradients("outer", [](In t) { return exp(apply(Outer{}, t[0], t[1], t[2])); },
                         {wave({3}, 7), wave({4}, 8), wave({}, 9)});
  test::expect_gradients("strided", [](In t) { return apply(Strided{}, t[0]); }, {wave({3, 7}, 7)});
  test::expect_gradients("with_transposed", [](In t) { return apply(WithTransposed{}, t[0]); },
                         {square});
}

TEST(Elements, AGradientThatCannotBeDerivedIsRefused) {
  const AnyTensor x = make<float>({1, 2}, {2}, test::device().autodiff()).require_grad();
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)apply(Repeated{}, x); }),
              HasSubstr("repeated: rule 'element' reads x at coordinates from which those of the "
                        "result do not follow, so its gradient is not derived; add a rule "
                        "'backward'"));
  EXPECT_THAT(values(apply(Repeated{}, x.detach())), ElementsAre(1, 1, 2, 2));
}

/// Seven operands, each read in place and from the other end.
struct Seven {
  static constexpr std::string_view name = "seven";
  static constexpr std::array inputs = {"a", "b", "c", "d", "e", "f", "g"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& a, const TensorSpec&, const TensorSpec&,
                           const TensorSpec&, const TensorSpec&, const TensorSpec&,
                           const TensorSpec&) {
    return a;
  }
  static Expr element(const At& at, const Elements& a, const Elements& b, const Elements& c,
                      const Elements& d, const Elements& e, const Elements& f, const Elements& g) {
    const At end = at.with(0, at.size(0) - 1 - at[0]);
    Expr sum = a(at) - a(end);
    for (const Elements* x : {&b, &c, &d, &e, &f, &g}) sum = sum * 2 + (*x)(at) - (*x)(end);
    return sum;
  }
};
static_assert(Extension<Seven>);

TEST(WgslElements, AnAdapterOfFewBuffersReadsAtPlacesWhatItCannotBindTwice) {
  const Device portable = wgpu::portable_device();
  ASSERT_EQ(portable.limits().storage_buffers, 8U);
  for (const Device& device : {portable.lazy(), portable.eager(), lazy()}) {
    std::vector<AnyTensor> x;
    for (int i = 0; i < 7; ++i)
      x.push_back(make<float>({static_cast<float>(i), 1, 3}, {3}, device));
    // Each term is x[i] - x[2 - i]: i - 3, 0 and 3 - i, doubled once for each that follows.
    const AnyTensor sum = apply(Seven{}, x[0], x[1], x[2], x[3], x[4], x[5], x[6]);
    EXPECT_THAT(values(sum), ElementsAre(-261, 0, 261));
    EXPECT_THAT(values(apply(Flip{0}, sum) + x[0]), ElementsAre(261, 1, -258));
    EXPECT_THAT(values(apply(Im2col{1, 0}, reshape(x[0] * 2.0, {1, 1, 3}))), ElementsAre(0, 2, 6));
  }
}

TEST(Elements, GradientsOfNothingAreZeros) {
  const Device device = test::device().autodiff();
  const AnyTensor x = make<float>({1, 2}, {2}, device).require_grad();
  const AnyTensor none = apply(Pad{0, -1, -1, 0}, x);
  EXPECT_EQ(none.shape(), Shape{0});
  EXPECT_THAT(values(sum(none).backward().of(x)), ElementsAre(0, 0));
}

struct TooFew {
  static constexpr std::string_view name = "too_few";
  static constexpr std::array inputs = {"image"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& image) { return image(at[0]); }
};
struct OtherDtype {
  static constexpr std::string_view name = "other_dtype";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {x.shape, DType::i32}; }
  static Expr element(const At& at, const Elements& x) { return x(at); }
};
struct ByFloat {
  static constexpr std::string_view name = "by_float";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At&, const Elements& x) { return x(x(0)); }
};
struct ReadsParam {
  static constexpr std::string_view name = "reads_param";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param by;
  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(static_cast<int>(by.value()), at[0]));
  }
};

TEST(Elements, FaultsNameTheOperation) {
  const AnyTensor x = counted({2, 3});
  EXPECT_THAT(message_of<ShapeError>([&] { apply(TooFew{}, x); }),
              HasSubstr("too_few: rule 'element' reads image, of shape [2, 3], with 1 coordinates; "
                        "it must be 2"));
  EXPECT_THAT(message_of<ShapeError>([&] { apply(Flip{2}, x); }),
              HasSubstr("flip: rule 'element' names axis 2 of 2"));
  EXPECT_THAT(
      message_of<DTypeError>([&] { apply(OtherDtype{}, x); }),
      HasSubstr("other_dtype: the result is i32 by the output rule, but rule 'element' gives "
                "f32; cast it"));
  EXPECT_THAT(message_of<DTypeError>([&] { apply(ByFloat{}, counted({2})); }),
              HasSubstr("by_float: a coordinate must be i32, got f32; cast it"));
  EXPECT_THAT(message_of<Error>([&] { apply(ReadsParam{0}, x); }),
              HasSubstr("reads_param: rule 'element' reads the value of a Param"));
  EXPECT_THAT(message_of<DTypeError>([&] { values(apply(Roll{0.5, 0}, x)); }),
              HasSubstr("roll: the number 0.5 is no i32"));
  const AnyTensor one = counted({1});
  EXPECT_THAT(
      message_of<ShapeError>([&] { apply(Flip{0}, broadcast_to(one, {std::int64_t{1} << 31})); }),
      HasSubstr(
          "flip: the result has 2147483648 elements along axis 0; rule 'element' counts up to "
          "2147483647"));
}

}  // namespace
}  // namespace kiln
