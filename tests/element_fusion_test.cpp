// Operations that say where their elements come from, among their neighbours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/runtime/webgpu/portable_test_support.hpp"
#include "tests/element_rules.hpp"

namespace kiln {
namespace {

using namespace element_rules;
using ::testing::ElementsAre;

TEST(ElementFusion, ProducersAndConsumersAreOneLaunch) {
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

TEST(ElementFusion, PlacesAreFoundThroughViews) {
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

TEST(ElementFusion, WhatCannotBeOneLaunchIsRightAllTheSame) {
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

TEST(ElementFusion, StoresOfKernelsTakeWhatKnowsItsPlace) {
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

TEST(ElementFusion, ReductionsComputeThemAsTheyLoad) {
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

TEST(ElementFusion, LongReductionsOfThemAreMadeInParts) {
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

TEST(ElementFusion, AResultNeverOverwritesWhatIsReadElsewhere) {
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

TEST(ElementFusion, ANewSizeCompilesNothing) {
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

TEST(WgslElementFusion, AnAdapterOfFewBuffersReadsAtPlacesWhatItCannotBindTwice) {
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

}  // namespace
}  // namespace kiln
