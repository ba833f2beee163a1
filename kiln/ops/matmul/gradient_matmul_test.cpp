// Products in which one operand is a gradient: its zeros are strong.
#include <limits>

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::values;
using ::testing::ElementsAre;

constexpr float inf = std::numeric_limits<float>::infinity();

using Multiply = std::function<AnyTensor(const AnyTensor&, const AnyTensor&, GradientIn)>;

/// A wave with a zero in every third place, and in every place of every 16th line.
AnyTensor gradient(const Shape& shape, DType dtype) {
  std::vector<float> x = test::wave(shape.elements());
  const std::int64_t width = shape[-1];
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t line = static_cast<std::int64_t>(i) / width;
    if (i % 3 == 0 || line % 16 == 5) x[i] = i % 2 == 0 ? 0.0F : -0.0F;
  }
  return make(x, shape, dtype);
}

/// A wave with some numbers that are none.
AnyTensor other(const Shape& shape, DType dtype) {
  std::vector<float> x = test::wave(shape.elements(), 1);
  for (std::size_t i = 2; i < x.size(); i += 29) x[i] = i % 2 == 0 ? inf : NAN;
  if (x.size() > 40) x[40] = -inf;
  return make(x, shape, dtype);
}

AnyTensor to_batch(const AnyTensor& x, const Shape& out) {
  Shape shape = out;
  shape[-2] = x.dim(-2);
  shape[-1] = x.dim(-1);
  return broadcast_to(x, shape);
}

/// The product on the host, with strong zeros of the gradient, in double precision.
std::vector<double> expected(const AnyTensor& lhs, const AnyTensor& rhs, GradientIn side) {
  const Shape out = matmul_spec("test", lhs.spec(), rhs.spec()).shape;
  const std::vector<float> a = values(to_batch(lhs, out));
  const std::vector<float> b = values(to_batch(rhs, out));
  const auto inner = static_cast<std::size_t>(lhs.dim(-1));
  const auto n = static_cast<std::size_t>(out[-1]);
  const auto m = static_cast<std::size_t>(out[-2]);
  std::vector<double> result;
  for (std::size_t row = 0; row < static_cast<std::size_t>(out.elements()) / n; ++row) {
    for (std::size_t col = 0; col < n; ++col) {
      double sum = 0;
      for (std::size_t k = 0; k < inner; ++k) {
        const double x = a[row * inner + k];
        const double y = b[(row / m * inner + k) * n + col];
        sum += (side == GradientIn::lhs ? x : y) == 0 ? 0 : x * y;
      }
      result.push_back(sum);
    }
  }
  return result;
}

struct Seen {
  int nan = 0;
  int infinite = 0;
  int finite = 0;
};

Seen expect_strong(const Multiply& multiply, const AnyTensor& lhs, const AnyTensor& rhs,
                   GradientIn side) {
  const std::vector<double> want = expected(lhs, rhs, side);
  const std::vector<float> got = values(multiply(lhs, rhs, side));
  EXPECT_EQ(got.size(), want.size());
  const double tolerance = lhs.dtype() == DType::f16 ? 4e-3 : 2e-5;
  Seen seen;
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    ++(std::isnan(want[i]) ? seen.nan : std::isinf(want[i]) ? seen.infinite : seen.finite);
    if (std::isfinite(want[i])) {
      EXPECT_NEAR(double{got[i]}, want[i], tolerance * (1 + std::abs(want[i])))
          << i << " of " << to_string(lhs.shape()) << " @ " << to_string(rhs.shape());
    } else {
      EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : double{got[i]} == want[i])
          << i << " of " << to_string(lhs.shape()) << " @ " << to_string(rhs.shape()) << ": "
          << got[i] << ", not " << want[i];
    }
  }
  return seen;
}

struct Problem {
  Shape lhs;
  Shape rhs;
};

void expect_strong(const Multiply& multiply, const std::vector<Problem>& problems, DType dtype) {
  Seen all;
  const auto check = [&](const AnyTensor& lhs, const AnyTensor& rhs, GradientIn side) {
    const Seen seen = expect_strong(multiply, lhs, rhs, side);
    all = {all.nan + seen.nan, all.infinite + seen.infinite, all.finite + seen.finite};
  };
  for (const auto& [lhs, rhs] : problems) {
    check(gradient(lhs, dtype), other(rhs, dtype), GradientIn::lhs);
    check(other(lhs, dtype), gradient(rhs, dtype), GradientIn::rhs);
    // As backward rules have them: the factor that is kept is transposed.
    check(gradient(lhs, dtype), transpose(other(transpose(other(rhs, dtype)).shape(), dtype)),
          GradientIn::lhs);
    check(transpose(other(transpose(other(lhs, dtype)).shape(), dtype)), gradient(rhs, dtype),
          GradientIn::rhs);
  }
  EXPECT_GT(all.nan, 0) << "where the gradient is not 0, NaN stays";
  EXPECT_GT(all.infinite, 0);
  EXPECT_GT(all.finite, 0);
}

const std::vector<Problem> problems{{{5, 7}, {7, 9}},
                                    {{40, 33}, {33, 70}},
                                    {{17, 16}, {16, 3}},
                                    {{6, 10}, {2, 10, 5}},
                                    {{2, 1, 9, 6}, {3, 6, 4}}};

TEST(GradientMatmul, ZerosOfTheGradientAreStrong) {
  const Multiply multiply = [](const auto& a, const auto& b, GradientIn side) {
    return matmul(a, b, side);
  };
  expect_strong(multiply, problems, DType::f32);
  expect_strong(multiply, {problems[1]}, DType::f16);
}

TEST(GradientMatmul, IsAnyOtherProductWhereAllIsFinite) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor a = gradient({33, 40}, dtype);
    const AnyTensor b = test::make_wave({40, 21}, 1, dtype);
    const std::vector<float> plain = values(matmul(a, b));
    EXPECT_EQ(values(matmul(a, b, GradientIn::lhs)), plain);
    EXPECT_EQ(values(matmul(a, b, GradientIn::rhs)), plain);
  }
}

TEST(GradientMatmul, OfNothingIsZeroAndOfNoElementsEmpty) {
  const auto empty = [](const Shape& shape) { return make<float>({}, shape); };
  EXPECT_THAT(values(matmul(empty({2, 0}), empty({0, 2}), GradientIn::lhs)),
              ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(matmul(empty({0, 3}), make<float>({1, 2, 3}, {3, 1}), GradientIn::rhs).shape(),
            (Shape{0, 1}));
}

/// What a software adapter computes by lanes is computed here by the tiles of a GPU.
struct Tiled {
  static constexpr std::string_view name = "tiled";
  static constexpr std::array inputs = {"lhs", "rhs"};
  using layers = Layers<Cube, Fusion>;
  GradientIn gradient;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs) {
    return matmul_spec(name, lhs, rhs);
  }
  webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand& out,
                               const Limits& limits) const {
    Limits gpu = limits;
    gpu.software_adapter = false;
    return webgpu::tiled_matmul(lhs, rhs, out, gpu, gradient);
  }
};
static_assert(Extension<Tiled>);

TEST(WgslGradientMatmul, TheTilesOfAGpuKnowStrongZeros) {
  const Multiply multiply = [](const auto& a, const auto& b, GradientIn side) {
    return apply(Tiled{side}, a, b);
  };
  // Whole vec4, and sides and a depth that are none.
  const Seen even = expect_strong(multiply, gradient({5, 8}, DType::f32),
                                  other({8, 36}, DType::f32), GradientIn::lhs);
  const Seen odd = expect_strong(multiply, transpose(other({2, 7, 9}, DType::f16)),
                                 gradient({7, 33}, DType::f16), GradientIn::rhs);
  EXPECT_GT(even.nan + odd.nan, 0);
  EXPECT_GT(std::min(even.finite, odd.finite), 0);
}

// More steps along k than some adapters let a loop have rounds.
TEST(GradientMatmul, AVeryLongSumHasStrongZerosToItsEnd) {
  const std::int64_t k = 40001;
  std::vector<float> a(static_cast<std::size_t>(k), 1);
  std::vector<float> b(static_cast<std::size_t>(k), 1);
  for (const std::size_t i : {std::size_t{0}, a.size() / 2, a.size() - 1}) {
    a[i] = 0;
    b[i] = NAN;
  }
  const AnyTensor row = make(a, {1, k});
  const AnyTensor column = make(b, {k, 1});
  EXPECT_THAT(values(matmul(row, column, GradientIn::lhs)), ElementsAre(39998));
  EXPECT_THAT(values(matmul(transpose(column), transpose(row), GradientIn::rhs)),
              ElementsAre(39998));
}

TEST(GradientMatmul, WhatIsFusedIntoItComesAfterTheZeros) {
  const AnyTensor g = make<float>({0, 2, 1, 0}, {2, 2});
  const AnyTensor w = make<float>({inf, NAN, 3, 4}, {2, 2});
  const AnyTensor c = make<float>({1, -9}, {2});
  AnyTensor out = g;
  const auto spent = test::counted([&] {
    out = relu(matmul(g, w, GradientIn::lhs) + c);
    (void)out.value().raw();
  });
  EXPECT_EQ(spent.launches, default_device().is_eager() ? 3U : 1U);
  EXPECT_THAT(values(out), ElementsAre(7, 0, inf, testing::IsNan()));
}

/// The gradients of x @ w where `seed` arrives.
std::vector<AnyTensor> gradients(const AnyTensor& x, const AnyTensor& w, const AnyTensor& seed) {
  const Device device = test::device().autodiff();
  const AnyTensor a = x.to(device).require_grad();
  const AnyTensor b = w.to(device).require_grad();
  const Gradients all = vjp(std::array{matmul(a, b)}, std::array{seed});
  return {all.of(a), all.of(b)};
}

TEST(GradientMatmul, TheGradientsOfAProductHaveStrongZeros) {
  const AnyTensor x = make<float>({1, inf, 3, NAN}, {2, 2});
  const AnyTensor w = make<float>({1, NAN, 2, inf}, {2, 2});
  const auto first = gradients(x, w, make<float>({5, 0, 5, 0}, {2, 2}));
  EXPECT_THAT(values(first[0]), ElementsAre(5, 10, 5, 10));
  const auto second = gradients(x, w, make<float>({5, 1, 0, 0}, {2, 2}));
  EXPECT_THAT(values(second[0]), ElementsAre(testing::IsNan(), inf, 0, 0));
  EXPECT_THAT(values(second[1]), ElementsAre(5, 1, inf, inf));
}

TEST(GradientMatmul, IsDifferentiableWithStrongZerosAgain) {
  const Device device = test::device().autodiff();
  const AnyTensor g = make<float>({5, 0}, {1, 2}).to(device).require_grad();
  const AnyTensor w = make<float>({1, 2, NAN, inf}, {2, 2}).to(device).require_grad();
  const auto of = [&](const std::vector<float>& seed) {
    const AnyTensor arriving = make(seed, {1, 2});
    return vjp(std::array{matmul(g, w, GradientIn::lhs)}, std::array{arriving});
  };
  EXPECT_THAT(values(of({3, 0}).of(g)), ElementsAre(3, testing::IsNan()));
  EXPECT_THAT(values(of({3, 0}).of(w)), ElementsAre(15, 0, 0, 0));
  EXPECT_THAT(values(of({0, 0}).of(g)), ElementsAre(0, 0));
}

}  // namespace
}  // namespace kiln
