#include <fstream>
#include <numeric>

#include "kiln/runtime/webgpu/commands/recorder.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Transfer : public ::testing::Test {
 protected:
  Device device = webgpu::device();
  Runtime& runtime = device.runtime();
};

std::vector<std::uint8_t> counting_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

TEST_F(Transfer, ReadsBackWhatWasWritten) {
  const BufferPtr buffer = upload<float>(runtime, {1, -2, 3.5F});
  EXPECT_THAT(download(runtime, buffer, 3), ElementsAre(1, -2, 3.5F));
  EXPECT_THAT(download(runtime, buffer, 1, 4), ElementsAre(-2));
}

TEST_F(Transfer, EveryByteOffsetAndSizeIsRightAndTouchesNothingElse) {
  for (std::size_t offset = 0; offset < 5; ++offset) {
    for (std::size_t size = 0; size < 11; ++size) {
      const BufferPtr buffer = runtime.allocate(32);
      runtime.fill(buffer, 0, 32, 0xEEEEEEEE);
      const std::vector<std::uint8_t> data = counting_bytes(size);
      runtime.write(buffer, offset, std::as_bytes(std::span(data)));
      std::vector<std::uint8_t> expected(32, 0xEE);
      std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      EXPECT_EQ(download<std::uint8_t>(runtime, buffer, 32), expected)
          << "offset " << offset << ", size " << size;
      EXPECT_EQ(download<std::uint8_t>(runtime, buffer, size, offset), data)
          << offset << ", size " << size;
    }
  }
}

TEST_F(Transfer, LargeWritesOfAnySizeAreRight) {
  for (const std::size_t size : {65535U, 65536U, 65537U, 65542U, 1000001U, 9000000U}) {
    const std::vector<std::uint8_t> data = counting_bytes(size);
    const BufferPtr buffer = upload(runtime, data);
    EXPECT_EQ(download<std::uint8_t>(runtime, buffer, size), data) << size;
  }
}

TEST_F(Transfer, ReadingNothingGivesNothing) {
  const BufferPtr buffer = runtime.allocate(0);
  EXPECT_GE(buffer->size(), 256U);
  EXPECT_TRUE(runtime.read(buffer, 0, 0).get().empty());
  runtime.write(buffer, 0, {});
  runtime.fill(buffer, 0, 0, 1);
}

TEST_F(Transfer, FillsWithAnyWordAndNothingBeyond) {
  const BufferPtr buffer = runtime.allocate(256);
  for (const std::uint32_t word : {0U, 1U, 0x7FC00000U, 0xFFFFFFFFU}) {
    runtime.fill(buffer, 0, 256, 7);
    runtime.fill(buffer, 8, 16, word);
    EXPECT_THAT(download<std::uint32_t>(runtime, buffer, 8),
                ElementsAre(7, 7, word, word, word, word, 7, 7));
  }
}

TEST_F(Transfer, FillsLargeBuffers) {
  const BufferPtr buffer = runtime.allocate(20 << 20);
  for (const std::uint32_t word : {5U, 0U, 6U}) {
    runtime.fill(buffer, 0, 20 << 20, word);
    const std::vector<std::uint32_t> words(5 << 20, word);
    EXPECT_TRUE(download<std::uint32_t>(runtime, buffer, words.size()) == words) << word;
  }
}

TEST_F(Transfer, ThreeHundredUploadsThenAllReadsKeepTheirValues) {
  std::vector<BufferPtr> buffers;
  buffers.reserve(300);
  for (int i = 0; i < 300; ++i)
    buffers.push_back(upload(runtime, std::vector<float>(1000, static_cast<float>(i))));
  std::vector<std::future<std::vector<std::byte>>> reads;
  reads.reserve(300);
  for (const BufferPtr& buffer : buffers) reads.push_back(runtime.read(buffer, 0, 4000));
  for (int i = 0; i < 300; ++i) {
    EXPECT_THAT(values_of<float>(reads[static_cast<std::size_t>(i)].get()),
                Each(static_cast<float>(i)));
  }
}

TEST_F(Transfer, AReadSeesTheBufferAsItWasWhenAskedFor) {
  const BufferPtr buffer = upload<float>(runtime, {1});
  auto before = runtime.read(buffer, 0, 4);
  const std::vector<float> two = {2};
  runtime.write(buffer, 0, std::as_bytes(std::span(two)));
  EXPECT_THAT(download(runtime, buffer, 1), ElementsAre(2));
  EXPECT_THAT(values_of<float>(before.get()), ElementsAre(1));
}

TEST_F(Transfer, AReadDoesNotWaitAndMayBeDropped) {
  const BufferPtr buffer = upload<float>(runtime, {1, 2, 3});
  auto future = runtime.read(buffer, 0, 12);
  EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::deferred);
  for (int i = 0; i < 100; ++i) (void)runtime.read(buffer, 0, 12);
  EXPECT_THAT(values_of<float>(future.get()), ElementsAre(1, 2, 3));
}

TEST_F(Transfer, AReadOutlivesTheBufferAndEveryHandleOfTheDevice) {
  std::future<std::vector<std::byte>> future;
  {
    const Device own = webgpu::device({.f16 = false});
    future = own.runtime().read(upload<float>(own.runtime(), {4, 5}), 0, 8);
  }
  EXPECT_THAT(values_of<float>(future.get()), ElementsAre(4, 5));
}

TEST_F(Transfer, RefusesWhatLiesOutsideTheBuffer) {
  const BufferPtr buffer = runtime.allocate(256);
  const std::vector<std::byte> data(16);
  EXPECT_THAT(message_of<Error>([&] { runtime.write(buffer, 248, data); }),
              AllOf(HasSubstr("write"), HasSubstr("16"), HasSubstr("248"), HasSubstr("256")));
  EXPECT_THROW(runtime.read(buffer, 256, 4), Error);
  EXPECT_THROW(runtime.read(buffer, UINT64_MAX, 4), Error);
  EXPECT_THROW(runtime.fill(buffer, 0, 260, 0), Error);
  EXPECT_THAT(message_of<Error>([&] { runtime.fill(buffer, 2, 4, 0); }),
              HasSubstr("multiples of 4"));
  EXPECT_THROW(runtime.read(nullptr, 0, 4), Error);
}

TEST_F(Transfer, RefusesTheBufferOfAnotherDevice) {
  const Device other = webgpu::device({.f16 = false});
  const BufferPtr foreign = other.runtime().allocate(16);
  EXPECT_THAT(message_of<DeviceError>([&] { runtime.read(foreign, 0, 16); }),
              HasSubstr("another device"));
}

TEST_F(Transfer, APooledBufferIsReusedUnderItsId) {
  const RuntimeCounters before = runtime.counters();
  BufferPtr buffer = runtime.allocate(5000);
  EXPECT_EQ(runtime.counters().bytes_in_use, before.bytes_in_use + buffer->size());
  const std::uint64_t id = buffer->id();
  const BufferPtr other = runtime.allocate(5000);
  EXPECT_NE(other->id(), id);
  buffer.reset();
  buffer = runtime.allocate(4999);
  EXPECT_EQ(buffer->id(), id);
  EXPECT_GE(runtime.counters().reused, before.reused + 1);
}

TEST_F(Transfer, TrimGivesPooledMemoryBack) {
  runtime.allocate(1 << 20).reset();
  EXPECT_GE(runtime.counters().bytes_pooled, 1U << 20);
  runtime.trim();
  EXPECT_EQ(runtime.counters().bytes_pooled, 0U);
}

TEST_F(Transfer, MemoryIsGivenBackWhileRecordedWorkStillUsesIt) {
  constexpr std::uint64_t mib = 1 << 20;
  const CompiledKernelPtr kernel = runtime.compile(map_id("x + 1.0"), "plus_one");
  const BufferPtr out = runtime.allocate(4);
  BufferPtr in = runtime.allocate(100 * mib);
  const std::vector<float> values = {41};
  runtime.write(in, 0, std::as_bytes(std::span(values)));
  launch_map(runtime, kernel, in, out);
  in.reset();
  const std::uint64_t pooled = runtime.counters().bytes_pooled;
  for (const std::uint64_t size : {110U, 128U, 90U, 76U, 64U, 50U}) {
    if (size * mib <= runtime.limits().binding_bytes) runtime.allocate(size * mib).reset();
  }
  EXPECT_LT(runtime.counters().bytes_pooled, pooled + 500 * mib)
      << "what waited longest was dropped";
  EXPECT_THAT(download(runtime, out, 1), ElementsAre(42));
  runtime.trim();
}

TEST_F(Transfer, AllocationsUpToTheLimitWorkAndAboveItAreRefused) {
  const Limits& limits = runtime.limits();
  const std::uint64_t most = std::min(limits.buffer_bytes, limits.binding_bytes);
  EXPECT_THAT(message_of<OutOfMemoryError>([&] { runtime.allocate(most + 1); }),
              AllOf(HasSubstr(std::to_string(most + 1)), HasSubstr(std::to_string(most))));
  EXPECT_THROW(runtime.allocate(UINT64_MAX), OutOfMemoryError);
  if (limits.software_adapter) {
    EXPECT_EQ(runtime.allocate(most - 100)->size(), most);
    runtime.trim();
  }
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  file >> all >> all;
  return all * 4096;
}

TEST(Uploads, ThatAreDroppedAtOnceDoNotPileUp) {
  const Device device = webgpu::device();
  const std::vector<std::byte> data(16 << 20, std::byte{1});
  std::uint64_t most = 0;
  const std::uint64_t before = resident_bytes();
  for (int i = 0; i < 60; ++i) {
    device.runtime().write(device.runtime().allocate(data.size()), 0, data);
    most = std::max(most, resident_bytes());
  }
  EXPECT_LT(most - std::min(most, before), Recorder::most_staged + (128U << 20));
  device.runtime().trim();
}

TEST(Uploads, OfManyPartsArriveInOrder) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  std::vector<std::uint32_t> values(30 << 20);  // 120 MiB: more than one part
  for (std::size_t i = 0; i < values.size(); i += 1009) values[i] = static_cast<std::uint32_t>(i);
  const BufferPtr buffer = runtime.allocate(values.size() * 4);
  runtime.fill(buffer, 0, values.size() * 4, 7);
  runtime.write(buffer, 0, std::as_bytes(std::span(values)));
  runtime.write(buffer, 4, std::as_bytes(std::span(values)).subspan(8, 4));
  values[1] = values[2];
  EXPECT_TRUE(download<std::uint32_t>(runtime, buffer, values.size()) == values);
  runtime.trim();
}

}  // namespace
}  // namespace kiln::wgpu
