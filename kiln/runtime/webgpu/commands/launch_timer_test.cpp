#include "kiln/runtime/trace_log.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::Each;

class Timing : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(runtime.limits().timestamps) << "this adapter has no timestamps";
  }
  void TearDown() override { runtime.time_launches(false); }

  Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  CompiledKernelPtr small = runtime.compile(map_id("x + 1.0"), "small");
};

TEST_F(Timing, GivesOneTimeForEachLaunchInOrder) {
  const CompiledKernelPtr large = runtime.compile(map_id("sqrt(abs(sin(x)))"), "large");
  const BufferPtr a = upload(runtime, std::vector<float>(1 << 20, 1));
  const BufferPtr b = runtime.allocate(4 << 20);
  const BufferPtr c = runtime.allocate(4);
  launch_map(runtime, small, a, c);  // not timed
  runtime.time_launches(true);
  launch_map(runtime, large, a, b);
  launch_map(runtime, small, a, c);
  runtime.time_launches(false);
  launch_map(runtime, small, a, c);  // not timed
  const std::vector<LaunchTime> times = runtime.launch_times();
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].label, "large");
  EXPECT_EQ(times[1].label, "small");
  EXPECT_GT(times[0].nanoseconds, 10000U);
  EXPECT_LT(times[0].nanoseconds, 10'000'000'000U);
  EXPECT_GT(times[0].nanoseconds, times[1].nanoseconds);
  EXPECT_TRUE(runtime.launch_times().empty());
}

TEST_F(Timing, LaunchesBeginInOrderAndInTheHostsTime) {
  const BufferPtr a = upload(runtime, std::vector<float>(1 << 16, 1));
  const BufferPtr b = runtime.allocate(4 << 16);
  const std::uint64_t before = host_nanoseconds();
  runtime.time_launches(true);
  for (int i = 0; i < 3; ++i) launch_map(runtime, small, a, b);
  const std::vector<LaunchTime> times = runtime.launch_times();
  const std::uint64_t after = host_nanoseconds();
  ASSERT_EQ(times.size(), 3U);
  EXPECT_GE(times[0].begin, before);
  EXPECT_GE(times[1].begin, times[0].begin);
  EXPECT_GE(times[2].begin, times[1].begin);
  EXPECT_LE(times[2].begin + times[2].nanoseconds, after);
}

TEST_F(Timing, MoreLaunchesThanOneQuerySetHolds) {
  BufferPtr a = upload<float>(runtime, {0});
  BufferPtr b = runtime.allocate(4);
  runtime.time_launches(true);
  for (int i = 0; i < 5000; ++i) {
    launch_map(runtime, small, a, b);
    std::swap(a, b);
  }
  EXPECT_EQ(runtime.launch_times().size(), 5000U);
  EXPECT_THAT(download(runtime, a, 1), Each(5000));
}

}  // namespace
}  // namespace kiln::wgpu
