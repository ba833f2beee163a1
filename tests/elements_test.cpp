// Operations that say where their elements come from: values, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/element_rules.hpp"

namespace kiln {
namespace {

using namespace element_rules;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
