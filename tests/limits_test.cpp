// Sizes at and above what adapters and kernels can count.
#include "kiln/dispatch/test_support.hpp"
#include "kiln/kiln.hpp"

namespace kiln {
namespace {

using test::device;
using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Limits, ATensorJustAbove128MiBComputesToItsLastElement) {
  const std::int64_t n = (128LL << 20) / 4 + 1;
  if (device().limits().binding_bytes < static_cast<std::uint64_t>(n) * 4) {
    EXPECT_THAT(message_of<OutOfMemoryError>([&] { (void)full({n}, 1, device()).to_vector(); }),
                HasSubstr("full"));
    return;
  }
  const AnyTensor y = full({n}, 1.5, device()) * 2;
  EXPECT_THAT(slice(y, 0, n - 2).to_vector(), ElementsAre(3, 3));
  EXPECT_EQ(slice(y, 0, 0, 1).item(), 3);
}

TEST(Limits, AboveTheAdaptersLimitIsAnErrorWithOperationBytesAndLimit) {
  const std::uint64_t limit = device().limits().binding_bytes;
  const auto n = static_cast<std::int64_t>(limit / 4) + 1024;
  const AnyTensor wide = broadcast_to(full({1}, 1, device()), {n});  // a view: takes nothing
  EXPECT_EQ(wide.shape().elements(), n);
  EXPECT_THAT(message_of<Error>([&] { (void)(wide + 1).to_vector(); }),
              AllOf(HasSubstr("add"), HasSubstr(std::to_string(n))));
  EXPECT_EQ((full({2}, 1, device()) + 1).to_vector()[0], 2) << "what comes after works";
}

TEST(Limits, MoreElementsThanAKernelCountsAreRefusedNeverWrapped) {
  const AnyTensor one = full({1}, 1, device());
  for (const Shape& shape : {Shape{1LL << 33}, Shape{1LL << 17, 1LL << 17}, Shape{1LL << 31, 4}}) {
    const std::string text = message_of<ShapeError>([&] { (void)(broadcast_to(one, shape) * 2); });
    EXPECT_THAT(text, AllOf(HasSubstr("mul"), HasSubstr(to_string(shape)), HasSubstr("32 bits")));
    EXPECT_THROW((void)full(shape, 0, device()), ShapeError);
  }
  EXPECT_THROW((void)arange(1LL << 40, device()), ShapeError);
  EXPECT_THROW((void)matmul(broadcast_to(full({1, 1}, 1, device()), {1LL << 20, 1}),
                            broadcast_to(full({1, 1}, 1, device()), {1, 1LL << 20})),
               Error);
  const AnyTensor vast = broadcast_to(one, {1LL << 40, 1LL << 40});  // more than 64 bits count
  EXPECT_THROW((void)(vast + 1), ShapeError);
  EXPECT_THROW((void)vast.to_vector(), ShapeError);
  EXPECT_THROW((void)sum(vast), ShapeError);
}

TEST(Limits, LongReductionsOfViewsReadEveryElement) {
  // More than 2^24 elements: a single f32 sum of ones would stop there.
  const std::int64_t n = (1LL << 24) + 4096;
  EXPECT_EQ(sum(broadcast_to(full({1}, 1, device()), {n})).item(), static_cast<float>(n));
}

}  // namespace
}  // namespace kiln
