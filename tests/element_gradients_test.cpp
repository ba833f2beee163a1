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
  test::expect_gradients("with_transposed", [](In t) { return apply(WithTransposed{}, t[0]); },
                         {square});
}

TEST(ElementGradients, AGradientThatCannotBeDerivedIsRefused) {
  const AnyTensor x = make<float>({1, 2}, {2}, test::device().autodiff()).require_grad();
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)apply(Repeated{}, x); }),
              HasSubstr("repeated: rule 'element' reads x at coordinates from which those of the "
                        "result do not follow, so its gradient is not derived; add a rule "
                        "'backward'"));
  EXPECT_THAT(values(apply(Repeated{}, x.detach())), ElementsAre(1, 1, 2, 2));
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
