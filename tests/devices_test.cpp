// Several devices in one process, and one that is lost.
#include <thread>

#include "kiln/dispatch/test_support.hpp"
#include "kiln/kiln.hpp"
#include "kiln/runtime/webgpu/testing.hpp"

namespace kiln {
namespace {

using test::device;
using test::message_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What an application writes: it names no device.
AnyTensor model(const AnyTensor& x, const AnyTensor& w, const AnyTensor& b) {
  return softmax(gelu(matmul(x, w) + b));
}

AnyTensor random(const Shape& shape, int seed, const Device& on) {
  return random_normal(shape, static_cast<std::uint64_t>(seed), on);
}

TEST(Devices, OneFunctionRunsOnEachAndGivesTheSame) {
  std::vector<std::vector<float>> results;
  for (const Device& on : {device(), webgpu::device({.f16 = false}), device().autodiff()}) {
    results.push_back(
        model(random({4, 6}, 1, on), random({6, 5}, 2, on), random({5}, 3, on)).to_vector());
  }
  EXPECT_THAT(results, Each(results[0]));
}

TEST(Devices, MixingThemIsAnErrorThatNamesBothOperands) {
  const Device other = webgpu::device({.f16 = false});
  const AnyTensor x = random({2, 2}, 1, device());
  const AnyTensor y = random({3, 3}, 1, other);
  EXPECT_THAT(message_of<DeviceError>([&] { (void)matmul(x, y); }),
              AllOf(HasSubstr("matmul: operands must share a device"), HasSubstr("lhs"),
                    HasSubstr("rhs"), HasSubstr("to(device)")));
  EXPECT_THROW((void)(x + y), DeviceError);
  EXPECT_THROW((void)where(x, x, y), DeviceError);
  EXPECT_THROW((void)concat({x, y}, 0), DeviceError);
  EXPECT_EQ(matmul(x, random({2, 2}, 1, other).to(device())).shape(), (Shape{2, 2}));
}

TEST(Devices, F32WorksAndF16IsRefusedWhereTheAdapterHasNoF16) {
  const Device narrow = webgpu::device({.f16 = false});
  const AnyTensor x = random({3, 4}, 1, narrow.autodiff()).require_grad();
  const AnyTensor loss =
      cross_entropy(layer_norm(gather(transpose(x), 0, zeros({4, 3}, narrow, DType::i32)),
                               ones({3}, narrow), zeros({3}, narrow)),
                    tensor({0, 1, 2, 0}, {4}, narrow));
  EXPECT_EQ(loss.backward().of(x).shape(), x.shape()) << "no f32 kernel asks for f16";
  const AnyTensor half = tensor({float16(1.0F), float16(2.0F)}, {2}, narrow);
  EXPECT_THAT(message_of<Error>([&] { (void)(half + half).to_vector<float16>(); }),
              AllOf(HasSubstr("add"), HasSubstr("f16")));
  EXPECT_THAT(message_of<Error>([&] { (void)sum(half).to_vector<float16>(); }),
              AllOf(HasSubstr("sum"), HasSubstr("f16")));
  EXPECT_THAT(half.to(device()).to_vector<float16>(), ElementsAre(1, 2))
      << "storing and moving it is fine";
}

TEST(Devices, ALostOneSaysSoAndANewOneWorks) {
  const Device doomed = webgpu::device({.adapter = device().adapter(), .f16 = false});
  const AnyTensor x = random({4, 4}, 1, doomed.autodiff()).require_grad();
  const AnyTensor loss = sum(matmul(x, x));
  wgpu::lose_device(doomed);
  EXPECT_THAT(message_of<DeviceError>([&] { (void)loss.backward().of(x).to_vector(); }),
              HasSubstr("lost"));
  EXPECT_THROW((void)x.to_vector(), DeviceError);
  EXPECT_THROW((void)(x + x).to_vector(), DeviceError);
  const Device fresh = webgpu::device({.adapter = device().adapter(), .f16 = false});
  EXPECT_FALSE(fresh.same_as(doomed));
  const AnyTensor y = random({4, 4}, 1, fresh.autodiff()).require_grad();
  EXPECT_EQ(sum(matmul(y, y)).backward().of(y).shape(), (Shape{4, 4}));
}

TEST(Devices, ATensorIsSharedByThreadsWhileItsFirstOwnerDropsIt) {
  auto x = std::make_shared<AnyTensor>(full({1024}, 2, device()));
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&mine, copy = *x] {
      AnyTensor y = copy;
      for (int i = 0; i < 20; ++i) y = y * 1.5 - y * 0.5;
      mine = y.to_vector();
    });
  }
  x.reset();
  for (int i = 0; i < 50; ++i) (void)full({1024}, i, device());
  for (std::thread& t : threads) t.join();
  for (const auto& values : found) EXPECT_THAT(values, Each(2));
}

TEST(Devices, ThreadsGoOnWhileOneMeetsErrors) {
  std::thread clumsy([] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_THROW((void)(full({2}, 1, device()) + full({3}, 1, device())), ShapeError);
    }
  });
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ((full({2}, i, device()) + 1).to_vector()[1], static_cast<float>(i + 1));
  clumsy.join();
}

}  // namespace
}  // namespace kiln
