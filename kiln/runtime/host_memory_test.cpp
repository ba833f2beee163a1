#include "kiln/runtime/host_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t mega = 1 << 20;

/// A folder that looks like a machine.
class Machine : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("kiln_machine_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] std::uint64_t left() const { return host_memory_left(root_.string()); }

 private:
  std::filesystem::path root_;
};

TEST_F(Machine, ThatSaysNothingHasNoLimit) { EXPECT_EQ(left(), UINT64_MAX); }

TEST_F(Machine, GivesWhatIsAvailable) {
  file("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(left(), 2048U << 10);
}

TEST_F(Machine, AControlGroupAroundOursMayLeaveLess) {
  file("proc/meminfo", "MemAvailable:    1048576 kB\n");
  file("proc/self/cgroup", "0::/outer/inner\n");
  file("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  file("sys/fs/cgroup/outer/inner/memory.current", "5000000\n");
  EXPECT_EQ(left(), 1048576U << 10);
  file("sys/fs/cgroup/outer/memory.max", "10000000\n");
  file("sys/fs/cgroup/outer/memory.current", "6000000\n");
  EXPECT_EQ(left(), 4000000U);
  file("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 900000\nactive_file 100000\n");
  EXPECT_EQ(left(), 5000000U) << "what files are cached in is given up first";
  file("sys/fs/cgroup/outer/inner/memory.max", "5000001\n");
  EXPECT_EQ(left(), 1U);
}

TEST_F(Machine, TheFirstVersionOfControlGroupsIsRead) {
  file("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/box\n0::/\n");
  file("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "700\n");
  file("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "800\n");
  EXPECT_EQ(left(), 0U);
}

/// Sets KILN_HOST_MEMORY for one test.
class LimitedHost : public ::testing::Test {
 protected:
  static void limit(const std::string& text) { ::setenv("KILN_HOST_MEMORY", text.c_str(), 1); }
  void TearDown() override { ::unsetenv("KILN_HOST_MEMORY"); }
};

TEST_F(LimitedHost, AClaimBeyondItIsRefusedAndComesBackWhenItEnds) {
  cpu::device().runtime().trim();
  limit("64G");
  {
    const auto first = HostClaim::take(40ULL << 30);
    EXPECT_TRUE(first);
    EXPECT_FALSE(HostClaim::take(40ULL << 30));
    EXPECT_TRUE(HostClaim::take(20ULL << 30)) << "what was refused is not counted";
  }
  EXPECT_TRUE(HostClaim::take(40ULL << 30));
}

TEST_F(LimitedHost, ManySmallClaimsAreCountedTogether) {
  limit("200M");
  std::vector<HostClaim> held;
  while (held.size() < 1000) {
    auto claim = HostClaim::take(mega);
    if (!claim) break;
    held.push_back(std::move(*claim));
  }
  EXPECT_LE(held.size(), 200U + 16U) << "looked at every 16 MiB";
}

TEST_F(LimitedHost, ATextThatIsNoNumberIsAnError) {
  for (const char* text : {"much", "-1", "1T", "nan", "1 G"}) {
    limit(text);
    EXPECT_THROW((void)HostClaim::take(64 * mega), DeviceError) << text;
  }
}

TEST_F(LimitedHost, ThePoolIsTrimmedBeforeAnAllocationIsRefused) {
  Runtime& runtime = cpu::device().runtime();
  runtime.trim();
  const std::uint64_t held = runtime.counters().bytes_in_use;
  limit(std::to_string((held >> 20) + 300) + "M");
  (void)runtime.allocate(200 * mega);  // waits in the pool from here on
  EXPECT_EQ(runtime.counters().bytes_pooled, 224 * mega);
  EXPECT_NO_THROW((void)runtime.allocate(140 * mega));
  EXPECT_THROW((void)runtime.allocate(400 * mega), OutOfMemoryError);
  EXPECT_NO_THROW((void)runtime.allocate(140 * mega)) << "and all goes on";
  runtime.trim();
}

TEST(Host, RefusesMemoryThatTheMachineDoesNotHave) {
  Runtime& runtime = cpu::device().runtime();
  if (host_memory_left() == UINT64_MAX) GTEST_SKIP() << "this system does not say what it has left";
  std::vector<BufferPtr> held;  // promised only: no page of them is touched
  const std::uint64_t pieces = (host_memory_left() >> 30) + 2;
  EXPECT_THROW(
      {
        for (std::uint64_t i = 0; i < pieces; ++i) held.push_back(runtime.allocate(1 << 30));
      },
      OutOfMemoryError);
  held.clear();
  runtime.trim();
  EXPECT_NO_THROW((void)runtime.allocate(mega));
}

}  // namespace
}  // namespace kiln
