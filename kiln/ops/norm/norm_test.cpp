#include "kiln/ops/norm/norm.hpp"

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
