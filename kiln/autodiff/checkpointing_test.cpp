#include "kiln/autodiff/node.hpp"
#include "kiln/autodiff/test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::values;

AnyTensor step(const AnyTensor& x) {
  static const BodyPtr body = body_of([](Expr v) { return tanh(v) * 1.5 + v * v * 0.01; });
  return apply_elementwise("step", body, {}, std::array{x});
}

AnyTensor product(const AnyTensor& a, const AnyTensor& b) {
  static const BodyPtr body = body_of([](Expr x, Expr y) { return x * y; });
  return apply_elementwise("product", body, {}, std::array{a, b});
}

constexpr std::int64_t elements = 1 << 16;
constexpr std::uint64_t bytes = elements * 4;

struct Outcome {
  std::uint64_t held = 0;      ///< bytes the graph keeps
  std::uint64_t launches = 0;  ///< of backward
  std::vector<float> gradient;
};

/// `depth` memory-bound operations in a row; at once, as the launches of a queue do not tell what
/// was computed again.
Outcome chain(Checkpointing strategy, int depth) {
  const Device device = test::device().eager().autodiff(strategy);
  const AnyTensor x = make_wave({elements}, 0, DType::f32, device).require_grad();
  const std::uint64_t before = test::counters().bytes_in_use;
  AnyTensor y = x;
  for (int i = 0; i < depth; ++i) y = step(y);
  Outcome out;
  out.held = test::counters().bytes_in_use - before;
  const std::uint64_t launches = test::counters().launches;
  const AnyTensor seed = make_wave({elements}, 3);
  out.gradient = values(vjp({&y, 1}, {&seed, 1}).of(x));
  out.launches = test::counters().launches - launches;
  return out;
}

TEST(Checkpointing, BalancedKeepsLessRecomputesAndGivesEqualGradients) {
  for (const int depth : {1, 2, 16, 17, 40}) {
    const Outcome keep = chain(Checkpointing::keep, depth);
    const Outcome balanced = chain(Checkpointing::balanced, depth);
    EXPECT_EQ(balanced.gradient, keep.gradient) << depth;
    EXPECT_EQ(keep.held, bytes * static_cast<std::uint64_t>(depth)) << depth;
    if (depth < 2) continue;
    EXPECT_GT(balanced.launches, keep.launches) << depth;
    EXPECT_LE(balanced.held, bytes * (2 + static_cast<std::uint64_t>(depth) / 16)) << depth;
  }
}

TEST(Checkpointing, ALongRecomputedChainDoesNotRecurseDeeply) {
  const Device device = test::device().autodiff(Checkpointing::balanced);
  const AnyTensor x = make<float>({0.5F}, {1}, device).require_grad();
  const auto gradient = [&](int depth) {
    AnyTensor y = x;
    for (int i = 0; i < depth; ++i) y = step(y);
    const AnyTensor seed = make<float>({1}, {1});
    return values(vjp({&y, 1}, {&seed, 1}).of(x))[0];
  };
  EXPECT_TRUE(std::isfinite(gradient(20)));  // compiles where the stack is large
  test::on_a_small_stack([&] { EXPECT_TRUE(std::isfinite(gradient(4000))); });
}

TEST(Checkpointing, WhatIsStillHeldIsNotComputedAgain) {
  const auto launches = [](bool hold) {
    const Device device = test::device().eager().autodiff(Checkpointing::balanced);
    const AnyTensor x = make_wave({8}, 0, DType::f32, device).require_grad();
    std::vector<AnyTensor> held;
    AnyTensor y = x;
    for (int i = 0; i < 5; ++i) {
      y = step(y);
      if (hold) held.push_back(y);
    }
    const AnyTensor seed = make_wave({8}, 3);
    return test::counted([&] { (void)vjp({&y, 1}, {&seed, 1}).of(x); }).launches;
  };
  EXPECT_LT(launches(true), launches(false));
}

TEST(Checkpointing, ARecomputedTensorMayBeUsedByManyAndBranch) {
  for (const bool diamond : {false, true}) {
    std::vector<std::vector<float>> found;
    for (const Checkpointing strategy : {Checkpointing::keep, Checkpointing::balanced}) {
      const Device device = test::device().autodiff(strategy);
      const AnyTensor x = make_wave({64}, 0, DType::f32, device).require_grad();
      const AnyTensor w = make_wave({64}, 1, DType::f32, device).require_grad();
      AnyTensor y = x;
      for (int i = 0; i < 20; ++i) {
        const AnyTensor next = step(y);
        y = diamond ? product(next, step(product(next, w))) : product(next, w);
      }
      const AnyTensor seed = make_wave({64}, 3);
      const Gradients g = vjp({&y, 1}, {&seed, 1});
      std::vector<float> both = values(g.of(x));
      const std::vector<float> second = values(g.of(w));
      both.insert(both.end(), second.begin(), second.end());
      found.push_back(both);
    }
    EXPECT_EQ(found[0], found[1]);
  }
}

TEST(Checkpointing, BackwardTwiceRecomputesTwice) {
  const Device device = test::device().autodiff(Checkpointing::balanced);
  const AnyTensor x = make_wave({64}, 0, DType::f32, device).require_grad();
  AnyTensor y = x;
  for (int i = 0; i < 8; ++i) y = step(y);
  const AnyTensor seed = make_wave({64}, 3);
  const std::vector<float> first = values(vjp({&y, 1}, {&seed, 1}).of(x));
  EXPECT_EQ(values(vjp({&y, 1}, {&seed, 1}).of(x)), first);
}

}  // namespace
}  // namespace kiln
