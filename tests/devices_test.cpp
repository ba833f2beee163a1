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
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

/// What an application writes: it names no device.
AnyTensor model(const AnyTensor& x, const AnyTensor& w, const AnyTensor& b) {
  return softmax(gelu(matmul(x, w) + b));
}

AnyTensor random(const Shape& shape, int seed, const Device& on) {
  return random_normal(shape, static_cast<std::uint64_t>(seed), on);
}

std::vector<float> modelled(const Device& on) {
  return model(random({4, 6}, 1, on), random({6, 5}, 2, on), random({5}, 3, on)).to_vector();
}

TEST(Devices, OneFunctionRunsOnEachAndGivesTheSame) {
  const std::vector<float> expected = modelled(device());
  EXPECT_EQ(modelled(device().autodiff()), expected);
  for (const Device& on : {webgpu::device(), webgpu::device({.f16 = false}), cpu::device()})
    EXPECT_THAT(modelled(on), Pointwise(FloatNear(1e-6F), expected)) << to_string(on);
}

TEST(Devices, OneOfTheHostAndOneOfAnAdapterWorkSideBySide) {
  const Device gpu = webgpu::device();
  const Device host = cpu::device();
  EXPECT_TRUE(host.same_as(cpu::device().autodiff()));
  EXPECT_FALSE(host.same_as(gpu));
  const AnyTensor x = random({3, 5}, 1, gpu);
  const AnyTensor moved = x.to(host);
  EXPECT_EQ(moved.to_vector(), x.to_vector());
  const AnyTensor back = transpose(moved * 2.0).to(gpu);
  EXPECT_THAT(sum(back - transpose(x * 2.0)).to_vector(), ElementsAre(0)) << "views move as values";
  for (const auto& [a, b] : {std::pair(x, moved), std::pair(moved, x)}) {
    EXPECT_THAT(message_of<DeviceError>([&, &a = a, &b = b] { (void)matmul(a, transpose(b)); }),
                AllOf(HasSubstr("matmul: operands must share a device"), HasSubstr("cpu: "),
                      HasSubstr("webgpu: "), HasSubstr("to(device)")));
  }
  EXPECT_THROW((void)(x + moved), DeviceError);
  EXPECT_THROW((void)from_raw(x.value().raw(), host), DeviceError);
}

TEST(Devices, EveryDTypeMovesBothWays) {
  const Device gpu = webgpu::device();
  const Device host = cpu::device();
  const auto there_and_back = [&](const AnyTensor& x) { return x.to(host).to(gpu); };
  EXPECT_THAT(there_and_back(tensor({float16(1.5F)}, {1}, gpu)).to_vector<float16>(),
              ElementsAre(1.5F));
  EXPECT_THAT(there_and_back(tensor({-7}, {1}, gpu)).to_vector<std::int32_t>(), ElementsAre(-7));
  EXPECT_THAT(there_and_back(tensor({7U}, {1}, gpu)).to_vector<std::uint32_t>(), ElementsAre(7));
  EXPECT_THAT(there_and_back(tensor(std::vector<bool>{true, false}, {2}, gpu)).to_vector<bool>(),
              ElementsAre(true, false));
  EXPECT_EQ(zeros({0, 3}, gpu).to(host).to_vector().size(), 0U);
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
      cross_entropy(layer_norm(gather(transpose(x), 0, zeros({4, 3}, DType::i32, narrow)),
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
  const Device doomed = webgpu::device({.f16 = false});
  const AnyTensor x = random({4, 4}, 1, doomed.autodiff()).require_grad();
  const AnyTensor loss = sum(matmul(x, x));
  wgpu::lose_device(doomed);
  EXPECT_THAT(message_of<DeviceError>([&] { (void)loss.backward().of(x).to_vector(); }),
              HasSubstr("lost"));
  EXPECT_THROW((void)x.to_vector(), DeviceError);
  EXPECT_THROW((void)(x + x).to_vector(), DeviceError);
  const Device fresh = webgpu::device({.f16 = false});
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
