#include "kiln/runtime/cpu/cpu_runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::cpu {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wgpu::download;
using wgpu::message_of;
using wgpu::upload;

class CpuRuntimeTest : public ::testing::Test {
 protected:
  std::shared_ptr<CpuRuntime> runtime = std::make_shared<CpuRuntime>();
};

TEST_F(CpuRuntimeTest, SaysWhatItIs) {
  EXPECT_EQ(runtime->name(), "cpu");
  EXPECT_THAT(runtime->adapter(), HasSubstr("threads"));
  EXPECT_THAT(runtime->languages(), ElementsAre(Language::cpp));
  EXPECT_TRUE(runtime->limits().f16);
  EXPECT_TRUE(device().same_as(device())) << "all share one";
  EXPECT_EQ(host(device().runtime()), &device().runtime());
}

TEST_F(CpuRuntimeTest, KeepsWhatIsWritten) {
  const BufferPtr buffer = upload(*runtime, std::vector<float>{1, 2, 3, 4});
  EXPECT_THAT(download(*runtime, buffer, 4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(download(*runtime, buffer, 2, 8), ElementsAre(3, 4));
  runtime->fill(buffer, 4, 8, 0);
  EXPECT_THAT(download(*runtime, buffer, 4), ElementsAre(1, 0, 0, 4));
}

TEST_F(CpuRuntimeTest, MemoryIsAlignedForVectorsAndReused) {
  const std::byte* first = nullptr;
  for (const std::uint64_t bytes : {0U, 1000U, 5U << 20}) {
    const BufferPtr buffer = runtime->allocate(bytes);
    EXPECT_GE(buffer->size(), bytes);
    const std::byte* data = runtime->data_of("test", buffer);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
    if (bytes == 1000) first = data;
  }
  EXPECT_EQ(runtime->data_of("test", runtime->allocate(1000)), first);
  EXPECT_EQ(runtime->counters().reused, 1U);
  EXPECT_EQ(runtime->counters().bytes_in_use, 0U);
  EXPECT_GT(runtime->counters().bytes_pooled, 0U);
  runtime->trim();
  EXPECT_EQ(runtime->counters().bytes_pooled, 0U);
}

TEST_F(CpuRuntimeTest, MoreThanTheMachineHasIsRefusedWithBothNumbers) {
  const std::uint64_t has = runtime->limits().buffer_bytes;
  EXPECT_THAT(message_of<OutOfMemoryError>([&] { (void)runtime->allocate(has + 1); }),
              AllOf(HasSubstr(std::to_string(has + 1)), HasSubstr(std::to_string(has))));
}

TEST_F(CpuRuntimeTest, WhatLiesOutsideOfABufferIsRefused) {
  const BufferPtr buffer = runtime->allocate(256);
  const std::vector<std::byte> bytes(300);
  EXPECT_THAT(message_of<Error>([&] { runtime->write(buffer, 0, bytes); }),
              HasSubstr("cpu: write: 300 bytes at 0 lie outside a buffer of 256"));
  EXPECT_THROW((void)runtime->read(buffer, 250, 8), Error);
  EXPECT_THROW((void)runtime->read(buffer, UINT64_MAX, 8), Error);
  EXPECT_THROW(runtime->fill(buffer, 2, 4, 0), Error);
  EXPECT_THROW(runtime->write(nullptr, 0, {}), Error);
}

TEST_F(CpuRuntimeTest, ABufferOfAnotherDeviceIsRefused) {
  const Device gpu = webgpu::device();
  EXPECT_THROW(runtime->write(gpu.runtime().allocate(4), 0, {}), DeviceError);
}

TEST_F(CpuRuntimeTest, KernelsInOtherLanguagesAreRefusedByName) {
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)runtime->compile({}, "mine"); }),
              AllOf(HasSubstr("mine: "), HasSubstr("WGSL"), HasSubstr("C++")));
  EXPECT_THROW(runtime->launch(nullptr, {}, {}, {1, 1, 1}), KernelError);
}

TEST_F(CpuRuntimeTest, CountsAndTimesLaunches) {
  runtime->run("not timed", [] {});
  runtime->time_launches(true);
  runtime->run("timed", [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  runtime->time_launches(false);
  const std::vector<LaunchTime> times = runtime->launch_times();
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].label, "timed");
  EXPECT_GE(times[0].nanoseconds, 2'000'000U);
  EXPECT_LE(times[0].begin + times[0].nanoseconds, host_nanoseconds());
  EXPECT_EQ(runtime->counters().launches, 2U);
  EXPECT_TRUE(runtime->launch_times().empty());
}

TEST_F(CpuRuntimeTest, AnAdoptedBufferKeepsItsOwnerAndIsNotItsToReuse) {
  auto owner = std::make_shared<std::vector<float>>(8, 3.0F);
  const std::weak_ptr<std::vector<float>> alive = owner;
  auto* data = reinterpret_cast<std::byte*>(owner->data());
  BufferPtr buffer = runtime->adopt(data, 32, std::move(owner));
  EXPECT_TRUE(buffer->frozen());
  EXPECT_THAT(download(*runtime, buffer, 8), Each(3));
  buffer = nullptr;
  EXPECT_TRUE(alive.expired());
}

TEST_F(CpuRuntimeTest, BuffersEndOnAnyThread) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const BufferPtr buffer = runtime->allocate(static_cast<std::uint64_t>(i) * 8);
        runtime->fill(buffer, 0, buffer->size(), 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runtime->counters().bytes_in_use, 0U);
}

}  // namespace
}  // namespace kiln::cpu
