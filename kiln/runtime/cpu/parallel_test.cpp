#include "kiln/runtime/cpu/parallel.hpp"

#include <gtest/gtest.h>
#include <oneapi/tbb/parallel_for.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace kiln::cpu {
namespace {

TEST(ParallelFor, CallsEveryNumberOnceInRangesOfAtLeastTheGrain) {
  for (const std::int64_t count : {0, 1, 7, 64, 1000, 12345}) {
    for (const std::int64_t grain : {0, 1, 10, 999, 100000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LT(begin, end);
        EXPECT_GE(end - begin, std::min(count, grain));
        for (std::int64_t i = begin; i < end; ++i) ++calls[static_cast<std::size_t>(i)];
      });
      for (const auto& times : calls) EXPECT_EQ(times, 1) << count << " by " << grain;
    }
  }
}

TEST(ParallelFor, ThrowsWhatTheFunctionThrows) {
  const auto fail = [](std::int64_t begin, std::int64_t) {
    if (begin == 0) throw std::runtime_error("the first range");
  };
  EXPECT_THROW(parallel_for(1000, 1, fail), std::runtime_error);
  EXPECT_THROW(parallel_for(1, 1, fail), std::runtime_error);
}

TEST(ParallelFor, MayBeCalledFromWithin) {
  std::atomic<int> calls = 0;
  parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
    parallel_for((end - begin) * 100, 1,
                 [&](std::int64_t from, std::int64_t to) { calls += static_cast<int>(to - from); });
  });
  EXPECT_EQ(calls, 800);
}

TEST(ParallelFor, AThreadThatWaitsForItTakesNoOtherWork) {
  // It would lock the mutex twice, and stop for ever.
  std::mutex mutex;
  std::atomic<int> done = 0;
  tbb::parallel_for(0, 64, [&](int) {
    const std::lock_guard lock(mutex);
    parallel_for(64, 1, [&](std::int64_t begin, std::int64_t end) {
      done += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(done, 64 * 64);
}

}  // namespace
}  // namespace kiln::cpu
