// Several threads and one queue: who waits for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "kiln/fusion/stream_test_support.hpp"
#include "kiln/runtime/cpu/cpu.hpp"

namespace kiln {
namespace {

using namespace test::queue;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Where an operation is held up until the test lets it go.
class Gate {
 public:
  ~Gate() { open(); }

  void pass() {
    std::unique_lock lock(mutex_);
    entered_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool is_open() {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  /// Waits until somebody stands before it.
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool entered_ = false;
  bool open_ = false;
};

/// An operation by hand: `before`, then its result is 10 and 20, in a buffer of its own.
Value by_hand(const Value& x, std::function<void()> before, const Device& on = lazy()) {
  return Stream::of(lazy().runtime())
      .launch("by_hand", on, {&x, 1}, {&x.spec(), 1},
              [before = std::move(before)](Client& client, std::span<const RawTensor>) {
                before();
                return std::vector{client.create<float>(std::array{10.0F, 20.0F}, {2})};
              })
      .front();
}
Value held_up(const Value& x, Gate& gate, const Device& on = lazy()) {
  return by_hand(x, [&] { gate.pass(); }, on);
}

/// Runs `f` on a thread of its own.
template <class F>
auto elsewhere(F f) {
  return std::async(std::launch::async, std::move(f));
}

/// Whether it ends though the gate is closed. The time is for a failure alone.
template <class T>
bool ends(const std::future<T>& task) {
  return task.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}
/// Whether it has not ended yet.
template <class T>
bool waits(const std::future<T>& task) {
  return task.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout;
}

TEST(StreamThreads, AReadDoesNotWaitForWhatAnotherThreadRuns) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  auto theirs = elsewhere([&] { return read(held_up(x, gate)); });
  gate.await();
  auto ours = elsewhere([&] { return read(twice(x)); });
  EXPECT_TRUE(ends(ours));
  gate.open();
  EXPECT_THAT(ours.get(), ElementsAre(2, 4));
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
}

TEST(StreamThreads, NorDoesAnOperationOfAnEagerDevice) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  auto theirs = elsewhere([&] { return read(held_up(x, gate, lazy().eager())); });
  gate.await();
  auto ours = elsewhere(
      [&] { return read(apply("twice", [](Expr v) { return v + v; }, {x}, lazy().eager())); });
  EXPECT_TRUE(ends(ours));
  gate.open();
  EXPECT_THAT(ours.get(), ElementsAre(2, 4));
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
}

TEST(StreamThreads, WhatAnotherThreadRunsIsWaitedForWhereItIsNeeded) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  const Value y = held_up(x, gate);
  auto theirs = elsewhere([&] { return read(y); });
  gate.await();
  auto same = elsewhere([&] { return read(y); });
  auto later = elsewhere([&] { return read(plus(twice(y), x)); });
  EXPECT_TRUE(waits(same));
  EXPECT_TRUE(waits(later));
  gate.open();
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
  EXPECT_THAT(same.get(), ElementsAre(10, 20));
  EXPECT_THAT(later.get(), ElementsAre(21, 42));
}

TEST(StreamThreads, APartThatIsDoneIsReadWhileTheRestRuns) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  const Value first = by_hand(x, [] {});
  const Value second = held_up(x, gate);
  auto theirs = elsewhere([&] { lazy().flush(); });
  gate.await();
  auto ours = elsewhere([&] { return read(plus(first, x)); });
  EXPECT_TRUE(ends(ours));
  gate.open();
  theirs.get();
  EXPECT_THAT(ours.get(), ElementsAre(11, 22));
}

TEST(StreamThreads, WhatMustWaitForAnotherThreadHoldsUpNoOtherRead) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  const Value y = held_up(x, gate);
  auto theirs = elsewhere([&] { return read(y); });
  gate.await();
  Value later;
  auto ours = elsewhere([&] {
    later = plus(twice(y), twice(x));
    return read(plus(x, x));
  });
  EXPECT_TRUE(ends(ours));
  gate.open();
  EXPECT_THAT(ours.get(), ElementsAre(2, 4));
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
  EXPECT_THAT(read(later), ElementsAre(22, 44));
}

TEST(StreamThreads, AFaultReachesEverybodyWhoWaitsForIt) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  const auto fault = [&] {
    gate.pass();
    throw KernelError("by_hand: on purpose");
  };
  const Value y = by_hand(x, fault);
  const auto message = [](const Value& of) { return message_of<KernelError>([&] { read(of); }); };
  auto theirs = elsewhere([&] { return message(y); });
  gate.await();
  auto same = elsewhere([&] { return message(y); });
  auto later = elsewhere([&] { return message(plus(twice(y), x)); });
  auto beside = elsewhere([&] {
    const Value of_y = twice(y);
    const Value of_x = twice(x);
    return message(of_y) + "; " + std::to_string(read(of_x)[1]);
  });
  EXPECT_TRUE(waits(same));
  gate.open();
  EXPECT_EQ(theirs.get(), "by_hand: on purpose");
  EXPECT_EQ(same.get(), "by_hand: on purpose");
  EXPECT_EQ(later.get(), "by_hand: on purpose");
  EXPECT_THAT(beside.get(), HasSubstr("by_hand: on purpose; 4.0"));
}

TEST(StreamThreads, AReadRunsWhatItsThreadQueuedAndLeavesTheRest) {
  const Value x = given({1, 2}, {2});
  lazy().flush();
  std::atomic<int> calls = 0;
  Value first;
  Value second;
  std::thread([&] {
    first = by_hand(x, [&] { ++calls; });
    second = by_hand(x, [&] { ++calls; });
  }).join();
  const Value own = by_hand(x, [&] { calls += 10; });
  EXPECT_THAT(read(twice(x)), ElementsAre(2, 4));
  EXPECT_EQ(calls, 10) << "its own, and none of the other thread";
  EXPECT_THAT(read(twice(first)), ElementsAre(20, 40));
  EXPECT_EQ(calls, 11) << "what it takes, whoever queued it";
  lazy().flush();
  EXPECT_EQ(calls, 12) << "all";
  EXPECT_THAT(read(second), ElementsAre(10, 20));
}

TEST(StreamThreads, WhatIsLeftFindsWhatItReads) {
  const Value x = given({1, 2}, {2});
  lazy().flush();
  Value shared = twice(x);
  Value theirs;
  Value dead;
  std::thread([&] {
    theirs = plus(shared, x);
    dead = twice(shared);
  }).join();
  shared = dead = Value();  // only what the other thread queued reads it now
  EXPECT_THAT(read(twice(twice(x))), ElementsAre(4, 8));
  EXPECT_THAT(read(theirs), ElementsAre(3, 6));
  EXPECT_THAT(inspect(lazy()).queued, 1U) << "the dead one went when somebody looked";
}

TEST(StreamThreads, SynchronizeWaitsForWhatOtherThreadsRunAndFlushDoesNot) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  auto theirs = elsewhere([&] { return read(held_up(x, gate)); });
  gate.await();
  auto flush = elsewhere([] { lazy().flush(); });
  EXPECT_TRUE(ends(flush));
  auto all = elsewhere([&] {
    lazy().synchronize();
    return gate.is_open();
  });
  EXPECT_TRUE(waits(all));
  gate.open();
  EXPECT_TRUE(all.get());
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
}

TEST(StreamThreads, AReportCountsWhatItsOwnDrainDid) {
  const Value x = given({1, 2}, {2});
  lazy().flush();
  Gate gate;
  auto theirs = elsewhere([&] { return read(held_up(x, gate)); });
  gate.await();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(read(twice(x)), ElementsAre(2, 4));
  gate.open();
  theirs.get();
  const DrainReport report = Stream::of(lazy().runtime()).last_drain();
  ASSERT_EQ(report.blocks.size(), 1U);
  EXPECT_THAT(report.blocks[0].ops, ElementsAre("by_hand"));
  EXPECT_EQ(report.launches, 0U) << "it uploads its result";
  EXPECT_EQ(report.allocations, 1U);
}

TEST(StreamThreads, WorkOfOneFormIsPlannedByWhoeverComesFirst) {
  const Value x = given({1, 2}, {2});
  std::vector<std::future<std::vector<float>>> tasks;
  std::atomic<int> ready = 0;
  constexpr int count = 4;
  for (int t = 0; t < count; ++t) {
    tasks.push_back(elsewhere([&] {
      Value y = x;
      for (int i = 0; i < 20; ++i) y = plus(twice(y), x);
      ++ready;
      while (ready < count) std::this_thread::yield();
      return read(y);
    }));
  }
  for (auto& task : tasks) EXPECT_EQ(task.get()[0], static_cast<float>((2 << 20) - 1));
  Value y = x;
  for (int i = 0; i < 20; ++i) y = plus(twice(y), x);
  EXPECT_EQ(read(y)[1], 2 * static_cast<float>((2 << 20) - 1));
  EXPECT_TRUE(Stream::of(lazy().runtime()).last_drain().plan_hit);
}

TEST(StreamThreads, AFullQueueDoesNotWaitForWhatAnotherThreadRuns) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  const Value y = held_up(x, gate);
  auto theirs = elsewhere([&] { return read(y); });
  gate.await();
  std::vector<Value> waiting;
  std::vector<Value> kept;
  std::atomic<int> calls = 0;
  auto ours = elsewhere([&] {
    for (int i = 0; i < 700; ++i) waiting.push_back(plus(y, x));
    for (int i = 0; i < 3000; ++i) kept.push_back(by_hand(x, [&] { ++calls; }));
    return calls.load();
  });
  EXPECT_TRUE(ends(ours));
  EXPECT_FALSE(gate.is_open());
  EXPECT_GT(ours.get() + static_cast<int>(Stream::most_queued), 3000) << "the queue is bounded";
  gate.open();
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
  EXPECT_THAT(read(waiting.back()), ElementsAre(11, 22));
  EXPECT_THAT(read(kept.front()), ElementsAre(10, 20));
}

TEST(StreamThreads, AQueueFullOfWhatMustWaitIsBounded) {
  const Value x = given({1, 2}, {2});
  Gate gate;
  const Value y = held_up(x, gate);
  auto theirs = elsewhere([&] { return read(y); });
  gate.await();
  std::vector<Value> kept;
  auto ours = elsewhere([&] {
    for (std::size_t i = 0; i < Stream::most_queued; ++i) kept.push_back(plus(y, x));
  });
  EXPECT_TRUE(waits(ours));
  gate.open();
  ours.get();
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
  EXPECT_THAT(read(kept.back()), ElementsAre(11, 22));
}

/// A device that is not waited for long: the host, whose kernels need no compiler that takes time.
class ShortPatience : public ::testing::Test {
 protected:
  ShortPatience() { ::setenv("KILN_DEVICE_TIMEOUT", "0.8", 1); }
  ~ShortPatience() override { ::unsetenv("KILN_DEVICE_TIMEOUT"); }
  const Device device_ = cpu::device().lazy();

  Value given(const std::vector<float>& values) {
    const Client client(device_.shared_runtime(), "test");
    return Value(client.create(std::span<const float>(values), {2}));
  }
  Value by_hand(const Value& x, std::function<void()> before) {
    return Stream::of(device_.runtime())
        .launch("joins", device_, {&x, 1}, {&x.spec(), 1},
                [before = std::move(before)](Client& client, std::span<const RawTensor>) {
                  before();
                  return std::vector{client.create<float>(std::array{10.0F, 20.0F}, {2})};
                })
        .front();
  }
  std::vector<float> read(const Value& value) {
    const Client client(device_.shared_runtime(), "test");
    return client.read<float>(value.raw());
  }
};

TEST_F(ShortPatience, AThreadThatARuleWaitsForMayNotReadWhatTheRunMakes) {
  const Value x = given({1, 2});
  Value y;
  std::array<std::string, 3> messages;
  y = by_hand(x, [&] {
    std::thread([&] { messages[0] = message_of<DeviceError>([&] { read(y); }); }).join();
  });
  EXPECT_THAT(read(y), ElementsAre(10, 20));
  Value z;
  z = by_hand(x, [&] {
    std::thread reads([&] {
      const Value of_z = apply("twice", [](Expr v) { return v + v; }, {z}, device_);
      messages[1] = message_of<DeviceError>([&] { read(of_z); });
    });
    std::thread waits(
        [&] { messages[2] = message_of<DeviceError>([&] { device_.synchronize(); }); });
    reads.join();
    waits.join();
  });
  EXPECT_THAT(read(z), ElementsAre(10, 20));
  for (const std::string& text : messages) {
    EXPECT_THAT(text, HasSubstr("another thread is at operation 'joins'"));
    EXPECT_THAT(text, HasSubstr("has done nothing for 0.8 s"));
  }
  EXPECT_THAT(messages[1], HasSubstr("twice"));
}

TEST_F(ShortPatience, WhatGoesOnIsWaitedForHoweverLongItTakes) {
  const Value x = given({1, 2});
  std::atomic<bool> began = false;
  const Value y = by_hand(x, [&] {
    began = true;
    for (int i = 0; i < 15; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      (void)given({1, 2});
    }
  });
  auto theirs = elsewhere([&] { return read(y); });
  while (!began) std::this_thread::yield();
  EXPECT_THAT(read(y), ElementsAre(10, 20));
  EXPECT_THAT(theirs.get(), ElementsAre(10, 20));
}

/// A value that threads hand to each other.
class Shared {
 public:
  explicit Shared(Value value) : value_(std::move(value)) {}
  [[nodiscard]] Value get() {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void set(Value value) {
    const std::lock_guard lock(mutex_);
    std::swap(value_, value);
  }

 private:
  std::mutex mutex_;
  Value value_;
};

/// Every value is (k, 2 k) for some k, unless somebody overwrote what another still reads.
void expect_pair(const std::vector<float>& got) {
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[1], 2 * got[0]);
}

/// One step of a thread that hands values about.
void hand_about(Shared& shared, int step) {
  const Value x = given({1, 2}, {2});
  const Value theirs = shared.get();
  const Value next = step % 8 == 7 ? given({1, 2}, {2}) : plus(twice(x), twice(theirs));
  if (step % 5 == 0) shared.set(next);
  if (step % 7 == 0) {
    const std::string text =
        message_of<KernelError>([&] { read(plus(broken(theirs), twice(next))); });
    EXPECT_THAT(text, HasSubstr("on purpose"));
  }
  if (step % 11 == 0) lazy().flush();
  if (step % 13 == 0) lazy().synchronize();
  if (step % 3 != 0) return;
  const Value last = plus(next, theirs);
  expect_pair(read(last));
  expect_pair(read(twice(last)));
}

TEST(StreamThreads, ThatHandValuesToEachOtherGetTheRightOnes) {
  Shared shared(given({1, 2}, {2}));
  const int steps = test::on_cpu() ? 400 : 100;
  std::vector<std::future<void>> tasks;
  for (int t = 0; t < 6; ++t) {
    tasks.push_back(elsewhere([&, t] {
      for (int step = 0; step < steps; ++step) hand_about(shared, step + t);
    }));
  }
  for (auto& task : tasks) task.get();
  expect_pair(read(shared.get()));
}

}  // namespace
}  // namespace kiln
