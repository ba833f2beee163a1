#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

TEST(PipelineCache, OneThreadsCompilationHoldsUpNobodyElse) {
  std::promise<void> begun;
  std::promise<void> others_are_done;
  PipelineCache cache([&](const KernelId& id, std::string_view) {
    if (id.source == "slow") {
      begun.set_value();
      others_are_done.get_future().wait();
    }
    return std::make_shared<const Pipeline>();
  });
  KernelId known;
  const auto first = cache.get(known, "known");
  KernelId slow;
  slow.source = "slow";
  std::jthread compiling([&] { EXPECT_NE(cache.get(slow, "slow"), nullptr); });
  begun.get_future().wait();
  EXPECT_EQ(cache.get(known, "known"), first);
  KernelId other;
  other.source = "other";
  EXPECT_NE(cache.get(other, "other"), nullptr);
  others_are_done.set_value();
}

TEST(PipelineCache, CompilesOnceForAllWhoWantAKernelAndAgainAfterAFault) {
  std::atomic<int> calls = 0;
  PipelineCache cache([&](const KernelId&, std::string_view) {
    if (calls.fetch_add(1) == 0) throw KernelError("not yet");
    return std::make_shared<const Pipeline>();
  });
  EXPECT_THROW(cache.get({}, "a"), KernelError);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { (void)cache.get({}, "a"); });
  threads.clear();
  EXPECT_EQ(calls, 2);
}

TEST(PipelineCache, KeepsThoseThatWereAskedForLast) {
  PipelineCache cache(
      [](const KernelId&, std::string_view) { return std::make_shared<const Pipeline>(); });
  const KernelId wanted;
  const auto first = cache.get(wanted, "wanted");
  for (std::size_t i = 0; i < PipelineCache::most + 100; ++i) {
    KernelId id;
    id.source = std::to_string(i);
    (void)cache.get(id, "another");
    EXPECT_EQ(cache.get(wanted, "wanted"), first);
  }
  EXPECT_EQ(cache.kept(), PipelineCache::most);
}

}  // namespace
}  // namespace kiln::wgpu
