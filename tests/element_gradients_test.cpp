// Gradients of operations that say where their elements come from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/element_rules.hpp"

namespace kiln {
namespace {

using namespace element_rules;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ElementGradients, AGradientByHandIsTaken) {
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

/// A number from the ends of a line.
struct Ends {
  static constexpr std::string_view name = "ends";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {{}, x.dtype}; }
  static Expr element(const At&, const Elements& x) { return x(0) * x(x.size(0) - 1); }
};
static_assert(Extension<Ends>);

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

TEST(ElementGradients, GradientsFollowFromTheRule) {
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
  test::expect_gradients("ends", [](In t) { return exp(apply(Ends{}, t[0])); }, {wave({5}, 7)});
  test::expect_gradients("with_transposed", [](In t) { return apply(WithTransposed{}, t[0]); },
                         {square});
}

/// x(index(i), j) / (1 + j): rows of x by number.
struct Rows {
  static constexpr std::string_view name = "rows";
  static constexpr std::array inputs = {"x", "index"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec& index) {
    return {{index.shape[0], x.shape[1]}, x.dtype};
  }
  static Expr element(const At& at, const Elements& x, const Elements& index) {
    const Expr j = cast(1 + at[1], DType::f32);
    return cast(cast(x(index(at[0]), at[1]).or_else(7), DType::f32) / j, x.dtype());
  }
};
static_assert(Extension<Rows>);

/// Two reads of one operand without a way back, one of them squared.
struct Folded {
  static constexpr std::string_view name = "folded";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Param by;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) {
    return {{3 * x.shape[0]}, x.dtype};
  }
  Expr element(const At& at, const Elements& x, const Elements& y) const {
    const Expr low = x(mod(at[0], x.size(0)));
    return low * low * y(at[0]) + x(floor_div(at[0], 3) - 1).or_else(2) * by;
  }
};
static_assert(Extension<Folded>);

/// It needs the number of the element that it makes.
struct Numbered {
  static constexpr std::string_view name = "numbered";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return x(at[1], at[0]) * cast(at.position(), DType::f32);
  }
};
static_assert(Extension<Numbered>);

struct DerivedIm2col {
  static constexpr std::string_view name = "derived_im2col";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Im2col how;
  TensorSpec output(const TensorSpec& x) const { return how.output(x); }
  Expr element(const At& at, const Elements& x) const { return how.element(at, x); }
};
static_assert(Extension<DerivedIm2col>);

TEST(ElementGradients, ReadsWithoutAWayBackAreScattered) {
  const Device device = test::device().autodiff();
  const auto wave = [&](const Shape& shape, int seed) {
    return make_wave(shape, seed, DType::f32, device);
  };
  test::expect_gradients("repeated", [](In t) { return exp(apply(Repeated{}, t[0])); },
                         {wave({5}, 1)});
  const AnyTensor index = make<std::int32_t>({2, 0, 2, -1, 3, 2}, {6}, device);
  test::expect_gradients("rows", [&](In t) { return exp(apply(Rows{}, t[0], index)); },
                         {wave({3, 4}, 2)});
  test::expect_gradients("folded", [](In t) { return apply(Folded{{0.5}}, t[0], t[1]); },
                         {wave({4}, 3), wave({12}, 4)});
  test::expect_gradients("numbered", [](In t) { return apply(Numbered{}, t[0]); },
                         {wave({4, 4}, 5)});
  test::expect_gradients("im2col", [](In t) { return exp(apply(DerivedIm2col{{3, 1}}, t[0])); },
                         {wave({2, 3, 4}, 6)});
}

TEST(ElementGradients, WhatIsScatteredKeepsTheDTypeAndHasOneResult) {
  const Device device = test::device().autodiff();
  const AnyTensor x = make_wave({3, 4}, 1, DType::f16, device).require_grad();
  const AnyTensor index = make<std::int32_t>({2, 0, 2, 2, 1, -5, 3}, {7}, device);
  const AnyTensor seed = make_wave({7, 4}, 2, DType::f16, device);
  const auto gradient = [&] {
    const AnyTensor y = apply(Rows{}, x, index);
    return vjp({&y, 1}, {&seed, 1}).of(x);
  };
  const AnyTensor g = gradient();
  EXPECT_EQ(g.spec(), x.spec());
  EXPECT_EQ(values(g), values(gradient()));
  const std::vector<float> s = values(seed);
  EXPECT_NEAR(values(g)[5], s[17] / 2, 1e-3);
  EXPECT_NEAR(values(g)[9], (s[1] + s[9] + s[13]) / 2, 2e-3);
}

TEST(ElementGradients, GradientsOfNothingAreZeros) {
  const Device device = test::device().autodiff();
  const AnyTensor x = make<float>({1, 2}, {2}, device).require_grad();
  const AnyTensor none = apply(Pad{0, -1, -1, 0}, x);
  EXPECT_EQ(none.shape(), Shape{0});
  EXPECT_THAT(values(sum(none).backward().of(x)), ElementsAre(0, 0));
}

}  // namespace
}  // namespace kiln
