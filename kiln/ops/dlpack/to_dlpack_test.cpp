#include "kiln/ops/dlpack/dlpack_test_support.hpp"

#include <array>
#include <thread>

#include "kiln/fusion/inspect.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using test::Array;
using test::elements_of;
using test::give_back;
using test::lazy;
using test::message_of;
using test::refusal;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Dlpack, IsForTheCpuDevice) {
  Array<float> array({1}, {1});
  EXPECT_THAT(refusal<DeviceError>(array, webgpu::device()),
              AllOf(HasSubstr("from_dlpack"), HasSubstr("webgpu"), HasSubstr("to()")));
  const AnyTensor x = ones({1}, webgpu::device());
  EXPECT_THAT(message_of<DeviceError>([&] { (void)to_dlpack(x); }),
              AllOf(HasSubstr("to_dlpack"), HasSubstr("webgpu"), HasSubstr("to(cpu::device())")));
  DLManagedTensor* given = to_dlpack(x.to(cpu::device()));
  EXPECT_THAT(elements_of(*given), ElementsAre(1));
  give_back(given);
}

TEST(ToDlpack, GivesTheElementsWhereTheyLie) {
  const AnyTensor x = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}, cpu::device());
  DLManagedTensor* given = to_dlpack(x);
  const DLTensor& t = given->dl_tensor;
  const RawTensor raw = x.value().raw();
  EXPECT_EQ(t.data, cpu::host(*raw.runtime)->data_of("test", raw.buffer));
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.ndim, 2);
  EXPECT_THAT(std::vector(t.shape, t.shape + 2), ElementsAre(2, 3));
  EXPECT_THAT(std::vector(t.strides, t.strides + 2), ElementsAre(3, 1));
  EXPECT_EQ(t.dtype.code, kDLFloat);
  EXPECT_EQ(t.dtype.bits, 32);
  EXPECT_EQ(t.dtype.lanes, 1);
  EXPECT_EQ(t.byte_offset, 0U);
  give_back(given);
}

TEST(ToDlpack, ViewsKeepTheirStrides) {
  const AnyTensor x = arange(24, cpu::device());
  for (const AnyTensor& view :
       {transpose(reshape(x, {4, 6})), slice(reshape(x, {4, 6}), 1, 1, 6, 2),
        broadcast_to(slice(x, 0, 5, 6), {2, 3}), reshape(slice(x, 0, 3, 4), {}),
        slice(reshape(x, {4, 6}), 0, 4)}) {
    DLManagedTensor* given = to_dlpack(view);
    EXPECT_EQ(elements_of(*given), values(view));
    give_back(given);
  }
}

TEST(ToDlpack, GivesEveryElementTypeButBool) {
  const auto type_after = [](const AnyTensor& x) {
    DLManagedTensor* given = to_dlpack(x);
    const DLDataType type = given->dl_tensor.dtype;
    give_back(given);
    return std::array<int, 3>{type.code, type.bits, type.lanes};
  };
  const auto of = [](DType dtype) { return ones({2}, dtype, cpu::device()); };
  EXPECT_THAT(type_after(of(DType::f32)), ElementsAre(kDLFloat, 32, 1));
  EXPECT_THAT(type_after(of(DType::f16)), ElementsAre(kDLFloat, 16, 1));
  EXPECT_THAT(type_after(of(DType::i32)), ElementsAre(kDLInt, 32, 1));
  EXPECT_THAT(type_after(of(DType::u32)), ElementsAre(kDLUInt, 32, 1));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)to_dlpack(of(DType::boolean)); }),
              AllOf(HasSubstr("cast it to u32"), HasSubstr("bool [2]")));
}

TEST(ToDlpack, RunsWhatIsQueued) {
  const AnyTensor x = full({3}, 2, lazy());
  DLManagedTensor* given = to_dlpack(x * x + 1);
  EXPECT_THAT(elements_of(*given), Each(5));
  give_back(given);
}

TEST(ToDlpack, RefusesATrackedTensor) {
  const AnyTensor x = ones({2}, cpu::device().autodiff()).require_grad();
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)to_dlpack(x * 2); }),
              AllOf(HasSubstr("detach()"), HasSubstr("f32 [2]")));
  DLManagedTensor* given = to_dlpack((x * 2).detach());
  EXPECT_THAT(elements_of(*given), Each(2));
  give_back(given);
}

TEST(ToDlpack, TheElementsLiveUntilTheDeleterIsCalled) {
  const auto in_use = [] { return cpu::device().runtime().counters().bytes_in_use; };
  const std::uint64_t before = in_use();
  DLManagedTensor* given = to_dlpack(full({1 << 16}, 3, lazy()));
  EXPECT_GE(in_use(), before + (4U << 16U));
  const AnyTensor others = full({1 << 16}, 4, lazy()) + 1;
  EXPECT_THAT(values(others), Each(5));
  EXPECT_THAT(elements_of(*given), Each(3));
  const std::uint64_t held = in_use();
  give_back(given);
  EXPECT_LE(in_use() + (4U << 16U), held);
}

TEST(ToDlpack, NothingIsWrittenInPlaceOfWhatOthersHave) {
  AnyTensor x = full({1000}, 7, lazy());
  DLManagedTensor* given = to_dlpack(x);
  const AnyTensor y = x + 1;
  x = {};
  EXPECT_EQ(inspect(lazy()).in_place, 0U);
  EXPECT_THAT(values(y), Each(8));
  EXPECT_THAT(elements_of(*given), Each(7));
  give_back(given);
}

TEST(Dlpack, ThereAndBackIsTheSameMemory) {
  AnyTensor x = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}, lazy());
  AnyTensor back = from_dlpack(to_dlpack(transpose(x)), lazy());
  EXPECT_EQ(back.shape(), (Shape{3, 2}));
  const AnyTensor more = x + 1;
  x = {};
  EXPECT_THAT(values(more), ElementsAre(2, 3, 4, 5, 6, 7));
  const AnyTensor twice = back * 2;
  back = {};
  EXPECT_THAT(values(twice), ElementsAre(2, 8, 4, 10, 6, 12));
}

TEST(Dlpack, AnotherThreadReadsWhileKilnComputes) {
  constexpr int rounds = 50;
  constexpr std::int64_t count = 4096;
  for (int i = 0; i < rounds; ++i) {
    AnyTensor x = full({count}, i, lazy());
    DLManagedTensor* given = to_dlpack(x);
    std::thread other([&, given] {
      const AnyTensor y = from_dlpack(given, lazy());
      EXPECT_THAT(values(y), Each(i));
    });
    const AnyTensor z = x + 1;
    x = {};
    EXPECT_THAT(values(z), Each(i + 1));
    other.join();
  }
}

}  // namespace
}  // namespace kiln
