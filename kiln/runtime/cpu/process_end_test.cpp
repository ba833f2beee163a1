#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kiln/runtime/cpu/gemm.hpp"
#include "kiln/runtime/cpu/parallel.hpp"
#include "kiln/support/error.hpp"

namespace kiln::cpu {
namespace {

constexpr std::int64_t size = 128;

void multiply() {
  const std::vector<float> a(size * size, 1);
  std::vector<float> out(size * size);
  gemm(size, size, size, {a.data(), size, 1}, {a.data(), size, 1}, out.data(), size);
}

std::int64_t count_in_parallel() {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(1000, [&](std::int64_t i) { sum += i; });
  return sum;
}

/// What a destructor of static storage gets; it decides what the process ends with.
enum class Late { product, parallel };
int code_of(Late what) {
  try {
    if (what == Late::parallel) return count_in_parallel() == 499500 && threads() == 1 ? 7 : 1;
    multiply();
    return 2;
  } catch (const DeviceError&) {
    return 7;
  }
}

void end_with(Late what) {
  struct AtExit {
    Late what;
    ~AtExit() { std::_Exit(code_of(what)); }
  };
  static const AtExit late{what};
  multiply();
  std::exit(0);
}

class HostProcessEnd : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(HostProcessEnd, RefusesAProductThatComesLater) {
  EXPECT_EXIT(end_with(Late::product), ::testing::ExitedWithCode(7), "");
}

TEST_F(HostProcessEnd, LeavesLaterParallelWorkToTheThreadThatHasIt) {
  EXPECT_EXIT(end_with(Late::parallel), ::testing::ExitedWithCode(7), "");
}

TEST_F(HostProcessEnd, FromInsideAKernelWaitsForTheOtherThreads) {
  EXPECT_EXIT(
      {
        const std::thread::id main = std::this_thread::get_id();
        std::atomic<int> done = 0;
        parallel_for(4096, [&](std::int64_t) {
          multiply();
          if (++done > 20 && std::this_thread::get_id() == main) std::exit(7);
        });
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(HostProcessEnd, InAForkedChildDoesNotWaitForTheParentsThreads) {
  EXPECT_EXIT(
      {
        // A child that is forked while the other thread loads a library could wait for it for ever.
        static std::atomic<int> products = 0;
        std::thread([] {
          for (;; ++products) multiply();
        }).detach();
        while (products < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        int status = 0;
        for (int i = 0; i < 5 && status == 0; ++i) {
          const pid_t child = fork();
          if (child == 0) std::exit(0);
          waitpid(child, &status, 0);
        }
        std::exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace kiln::cpu
