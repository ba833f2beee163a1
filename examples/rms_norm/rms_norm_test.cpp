#include "rms_norm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kiln/check/check.hpp"

namespace example {
namespace {

using namespace kiln;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string message_on(const Device& device) {
  try {
    (void)rms_norm(ones({2, 3}, device), ones({3}, device));
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "not refused";
}

AnyTensor made_up(const Device& device) { return random_normal({5, 70}, 3, device); }

TEST(RmsNorm, OnTheHostItIsRefusedByNameWithBothWaysOut) {
  EXPECT_THAT(message_on(cpu::device()),
              AllOf(HasSubstr("rms_norm: "), HasSubstr("cpu: "), HasSubstr("takes kernels in C++"),
                    HasSubstr("offers WGSL"), HasSubstr("device.fallback(true)")));
}

TEST(RmsNorm, WhereItIsAllowedTheReferenceRunsWithItsGradient) {
  const Device host = cpu::device().fallback(true);
  const Device gpu = webgpu::device();
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;
  for (const Device& device : {host, gpu}) {
    const AnyTensor x = made_up(device.autodiff()).require_grad();
    const AnyTensor y = rms_norm(x, arange(70, device.autodiff()) * 0.01);
    values.push_back(y.to_vector());
    gradients.push_back(sum(y * y).backward().of(x).to_vector());
  }
  EXPECT_THAT(values[0], testing::Pointwise(testing::FloatNear(2e-5F), values[1]));
  EXPECT_THAT(gradients[0], testing::Pointwise(testing::FloatNear(2e-4F), gradients[1]));
}

TEST(RmsNorm, OfF16ComputesInF32) {
  for (const Device& device : {webgpu::device(), cpu::device().fallback(true)}) {
    const AnyTensor x = cast(tensor({300.F, 400.F}, {1, 2}, device), DType::f16);
    const AnyTensor w = ones({2}, DType::f16, device);
    EXPECT_THAT(cast(rms_norm(x, w), DType::f32).to_vector(),
                testing::Pointwise(testing::FloatNear(1e-3F), {0.84853F, 1.13137F}));
  }
}

TEST(RmsNorm, TheOutputRuleRunsOnEveryRoute) {
  for (const Device& device : {webgpu::device(), cpu::device().fallback(true)})
    EXPECT_THROW((void)rms_norm(ones({2, 3}, device), ones({4}, device)), ShapeError);
  EXPECT_THROW((void)rms_norm(ones({2, 3}, cpu::device()), ones({4}, cpu::device())), ShapeError)
      << "a wrong shape is said before the missing kernel";
}

TEST(RmsNorm, AllowingItChangesNothingWhereThereIsAKernel) {
  const Device gpu = webgpu::device();
  const AnyTensor x = made_up(gpu);
  const AnyTensor w = ones({70}, gpu);
  EXPECT_EQ(rms_norm(x.to(gpu.fallback(true)), w).to_vector(), rms_norm(x, w).to_vector());
}

TEST(RmsNorm, TheProgramShowsAllThree) {
  std::FILE* pipe = popen("\"" KILN_PROGRAM "\"", "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_THAT(text, AllOf(HasSubstr("webgpu: "), HasSubstr("refused: rms_norm"),
                          HasSubstr("with fallback(true)")));
  const std::string row = "0.8485 1.1314 0.0000 -1.4142";
  EXPECT_NE(text.find(row), text.rfind(row)) << text;
}

}  // namespace
}  // namespace example
