#include "kiln/ops/norm/norm.hpp"

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<double> normalised(const AnyTensor& x, const AnyTensor& weight, const AnyTensor& bias) {
  const std::vector<float> in = values(x);
  const auto size = static_cast<std::size_t>(x.dim(-1));
  std::vector<double> out;
  for (std::size_t begin = 0; begin < in.size(); begin += size) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < size; ++i)
      mean += double{in[begin + i]} / static_cast<double>(size);
    for (std::size_t i = 0; i < size; ++i)
      variance += std::pow(double{in[begin + i]} - mean, 2) / static_cast<double>(size);
    for (std::size_t i = 0; i < size; ++i) {
      out.push_back((double{in[begin + i]} - mean) / std::sqrt(variance + 1e-5) *
                        double{values(weight)[i]} +
                    double{values(bias)[i]});
    }
  }
  return out;
}

TEST(LayerNorm, NormalisesTheLastAxis) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({2, 3, 10}, 0, dtype);
    const AnyTensor weight = make_wave({10}, 1, dtype);
    const AnyTensor bias = make_wave({10}, 2, dtype);
    EXPECT_EQ(layer_norm(x, weight, bias).spec(), x.spec());
    test::expect_near(values(layer_norm(x, weight, bias)), normalised(x, weight, bias),
                      dtype == DType::f16 ? 8e-3 : 1e-5);
  }
}

TEST(LayerNorm, AConstantRowGivesTheBias) {
  const AnyTensor bias = make_wave({4});
  test::expect_near(values(layer_norm(make<float>({7, 7, 7, 7}, {1, 4}), make_wave({4}, 1), bias)),
                    test::doubles(values(bias)), 1e-6);
}

/// With weights of 1 and without a bias.
std::vector<float> plain(const std::vector<float>& row, DType dtype, double epsilon) {
  const auto n = static_cast<std::int64_t>(row.size());
  const AnyTensor one = make(std::vector<float>(row.size(), 1), {n}, dtype);
  const AnyTensor zero = make(std::vector<float>(row.size(), 0), {n}, dtype);
  return values(layer_norm(make(row, {1, n}, dtype), one, zero, epsilon));
}

TEST(LayerNorm, IsRightWhereTheMeanIsFarFromZero) {
  for (const float at : {10000.0F, -10000.0F, 1e6F, 3e7F}) {
    const float step = at > 1e5F ? std::abs(at) * 0x1p-22F : 1e-3F;
    std::vector<float> row;
    for (int i = 0; i < 16; ++i) row.push_back(at + static_cast<float>(i) * step);
    const AnyTensor x = make(row, {1, 16});
    const AnyTensor one = make(std::vector<float>(16, 1), {16});
    const AnyTensor zero = make(std::vector<float>(16, 0), {16});
    test::expect_near(plain(row, DType::f32, 1e-5), normalised(x, one, zero), 2e-6);
  }
}

TEST(LayerNorm, IsRightWhereOneElementIsFarFromTheOthers) {
  for (const std::size_t at : {0U, 1U, 1023U}) {
    std::vector<float> row = test::wave(1024);
    row[at] = 1e4F;
    const AnyTensor x = make(row, {1, 1024});
    const AnyTensor one = make(std::vector<float>(1024, 1), {1024});
    const AnyTensor zero = make(std::vector<float>(1024, 0), {1024});
    test::expect_near(plain(row, DType::f32, 1e-5), normalised(x, one, zero), 1e-5);
  }
}

// Elements near the mean of a row whose first is far from it. They are off by what the moved row's
// mean is: that distance times 2^-24 for each of its sum, 1 / N and their product.
TEST(LayerNorm, IsOffByTheRoundingOfTheMovedRowsMean) {
  const std::vector<std::vector<float>> rows{
      {128, 0, 0, -128, -2}, {-78, 51, -21, 42, 6}, {-100, 0.5F, 0.25F, 0, 99}};
  for (const std::vector<float>& row : rows) {
    const double n = static_cast<double>(row.size());
    double mean = 0;
    double variance = 0;
    for (const float v : row) mean += double{v} / n;
    for (const float v : row) variance += (double{v} - mean) * (double{v} - mean) / n;
    const double deviation = std::sqrt(variance + 1e-5);
    const double shared = 3 * 0x1p-24 * std::abs(double{row[0]} - mean) / deviation;
    const std::vector<float> out = plain(row, DType::f32, 1e-5);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double expected = (double{row[i]} - mean) / deviation;
      EXPECT_NEAR(double{out[i]}, expected, shared + 1e-6 * std::abs(expected)) << row[0];
    }
  }
}

TEST(LayerNorm, IsRightWhereSquaresLeaveTheRange) {
  for (const float size : {1e15F, 1e19F, 1e25F, 1e35F, 5e37F}) {
    test::expect_near(plain({size, -size}, DType::f32, 1e-5), {1, -1}, 1e-6);
    test::expect_near(plain({size, size / 2, 0, -size / 2, -size}, DType::f32, 1e-5),
                      {M_SQRT2, M_SQRT1_2, 0, -M_SQRT1_2, -M_SQRT2}, 1e-6);
  }
  for (const float size : {1e-15F, 1e-20F, 1e-25F, 1e-30F})
    test::expect_near(plain({size, -size}, DType::f32, 0), {1, -1}, 1e-6);
  test::expect_near(plain({1e-25F, -1e-25F}, DType::f32, 1e-5), {0, 0}, 1e-20);
  std::vector<float> many(5000, 1e34F);
  for (std::size_t i = 0; i < many.size(); i += 2) many[i] = -1e34F;
  const std::vector<float> out = plain(many, DType::f32, 1e-5);
  EXPECT_NEAR(out[0], -1, 1e-5);
  EXPECT_NEAR(out[4999], 1, 1e-5);
}

TEST(LayerNorm, OfF16ComputesInF32) {
  EXPECT_THAT(plain({257, -257}, DType::f16, 1e-5), testing::ElementsAre(1, -1));
  EXPECT_THAT(plain({60000, -60000}, DType::f16, 1e-5), testing::ElementsAre(1, -1));
  test::expect_near(plain({1000, 1001, 1002, 1003}, DType::f16, 1e-5),
                    {-1.34163, -0.44721, 0.44721, 1.34163}, 1e-3);
  const auto f = [](const auto& in) { return layer_norm(in[0], in[1], in[2]); };
  std::vector<AnyTensor> half;
  std::vector<AnyTensor> single;
  for (const auto& [scale, shape] : {std::pair{300.0F, Shape{2, 6}}, {1.0F, {6}}, {1.0F, {6}}}) {
    std::vector<float> x = test::wave(shape.elements(), shape.rank());
    for (float& v : x) v = static_cast<float>(float16(v * scale));
    half.push_back(make(x, shape, DType::f16));
    single.push_back(make(x, shape));
  }
  const auto g = test::gradients_of(f, half, 1.0F);
  const auto expected = test::gradients_of(f, single, 1.0F);
  for (std::size_t i = 0; i < 3; ++i)
    test::expect_near(values(g[i]), test::doubles(values(expected[i])), 2e-3);
}

TEST(LayerNorm, ANaNAndAnInfinityFillTheirRowAlone) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0U, 2U}) {
      std::vector<float> x{1, 2, 3, 1, 2, 4};
      x[at] = bad;
      const std::vector<float> out = values(
          layer_norm(make(x, {2, 3}), make<float>({1, 1, 1}, {3}), make<float>({0, 0, 0}, {3})));
      for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(out[i]), i < 3) << bad << " " << i;
    }
  }
}

TEST(LayerNorm, IsOneLaunchAndNoneForWhatItReads) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({64, 256}, 0, dtype);
    const AnyTensor weight = make_wave({256}, 1, dtype);
    const auto spent = test::counted([&] { return layer_norm(x * 2, weight, weight); });
    if (default_device().is_eager()) continue;
    EXPECT_EQ(spent.launches, 1U);
  }
}

TEST(LayerNorm, GradientsAgreeWithDifferences) {
  test::expect_gradients(
      "layer_norm", [](const auto& in) { return layer_norm(in[0], in[1], in[2]); },
      {make_wave({2, 5}), make_wave({5}, 1), make_wave({5}, 2)}, 8e-3);
}

TEST(LayerNorm, SaysWhichShapesItTakes) {
  EXPECT_THAT(message_of<ShapeError>(
                  [] { (void)layer_norm(make_wave({2, 5}), make_wave({4}), make_wave({5})); }),
              AllOf(HasSubstr("layer_norm"), HasSubstr("[2, 5]"), HasSubstr("[4]")));
  EXPECT_THROW((void)layer_norm(make<float>({1}, {}), make_wave({1}), make_wave({1})), ShapeError);
}

}  // namespace
}  // namespace kiln
