#include "kiln/fusion/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "kiln/fusion/stream_test_support.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using namespace test::queue;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> ops_of(const DrainReport& report) {
  std::vector<std::string> out;
  for (const BlockReport& block : report.blocks)
    out.insert(out.end(), block.ops.begin(), block.ops.end());
  return out;
}

TEST(Stream, NothingRunsUntilSomebodyReads) {
  const Value x = given({1, 2}, {2});
  const std::uint64_t before = test::counters().launches;
  const Value y = twice(x);
  EXPECT_EQ(y.shape(), (Shape{2}));
  EXPECT_EQ(lazy().runtime().counters().launches, before);
  EXPECT_THAT(read(y), ElementsAre(2, 4));
  EXPECT_EQ(lazy().runtime().counters().launches, before + 1);
}

TEST(Stream, WhatNobodyHoldsIsNeverComputed) {
  const Value x = given({1, 2}, {2});
  test::counters();
  const Value kept = twice(x);
  {
    const Value dropped = twice(twice(kept));
  }
  EXPECT_THAT(read(kept), ElementsAre(2, 4));
  const DrainReport report = inspect(lazy());
  EXPECT_EQ(report.queued, 3U);
  EXPECT_EQ(report.dead, 2U);
  EXPECT_THAT(ops_of(report), ElementsAre("twice"));
}

TEST(Stream, AChainIsOneLaunchAndWritesItsEndOnly) {
  Value y = given({1, 2, 3, 4}, {4});
  test::counters();
  for (int i = 0; i < 8; ++i) y = twice(y);
  EXPECT_THAT(read(y), ElementsAre(256, 512, 768, 1024));
  const DrainReport report = inspect(lazy());
  EXPECT_EQ(report.launches, 1U);
  ASSERT_EQ(report.blocks.size(), 1U);
  EXPECT_EQ(report.blocks[0].ops.size(), 8U);
  EXPECT_EQ(report.blocks[0].bytes_read, 16U);
  EXPECT_EQ(report.blocks[0].bytes_written, 16U);
  EXPECT_EQ(report.allocations, 0U) << "the one input, which nobody else has, gives its buffer";
  EXPECT_EQ(report.in_place, 1U);
}

TEST(Stream, WhatIsStillHeldIsWrittenByTheSameLaunch) {
  const Value x = given({1, 2}, {2});
  test::counters();
  const Value a = twice(x);
  const Value b = plus(a, x);
  const Value c = plus(b, a);
  EXPECT_THAT(read(c), ElementsAre(5, 10));
  EXPECT_EQ(inspect(lazy()).launches, 1U);
  EXPECT_EQ(inspect(lazy()).in_place, 0U) << "x is still there";
  EXPECT_THAT(read(a), ElementsAre(2, 4));
  EXPECT_THAT(read(b), ElementsAre(3, 6));
  EXPECT_THAT(read(x), ElementsAre(1, 2));
}

TEST(Stream, EqualOperationsRunOnce) {
  const Value x = given({1, 2}, {2});
  test::counters();
  const Value a = twice(x);
  const Value b = twice(x);
  EXPECT_THAT(read(b), ElementsAre(2, 4));
  EXPECT_THAT(read(a), ElementsAre(2, 4));
  EXPECT_THAT(ops_of(inspect(lazy())), ElementsAre("twice"));
}

TEST(Stream, ViewsTakePartWithoutLaunches) {
  const Value x = given({1, 2, 3, 4, 5, 6}, {2, 3});
  test::counters();
  const Value y = twice(transposed(twice(x)));
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(read(y), ElementsAre(4, 16, 8, 20, 12, 24));
}

TEST(Stream, WorkOfOneFormIsPlannedOnce) {
  const auto step = [](float by) { return read(twice(plus(given({by}, {1}), given({1}, {1})))); };
  step(1);
  const DrainReport first = inspect(lazy());
  EXPECT_THAT(step(2), ElementsAre(6));
  const DrainReport second = inspect(lazy());
  EXPECT_TRUE(second.plan_hit);
  EXPECT_EQ(second.plan_hits, first.plan_hits + 1);
  EXPECT_EQ(second.plan_misses, first.plan_misses);
}

/// x * by, `by` being a number of the call.
Value scaled(const Value& x, double by) {
  static const BodyPtr body = [] {
    static const Param param;
    ExprGraph graph({&param});
    return make_body(graph, 1, 1, std::array{graph.place(graph.input(0) * param)});
  }();
  return record({"scaled", ElementwiseCall{body, {by}}}, lazy(), {&x, 1}, {&x.spec(), 1}).front();
}

TEST(Stream, NumbersThatAreEqualAtTimesPlanAndCompileNothing) {
  // Fused, alone, and as equal operations on one input, which would be one if the numbers decided.
  const auto step = [](double a, double b) {
    const Value x = given({1, 2}, {2});
    const Value y = plus(scaled(x, a), scaled(x, b));
    const Value z = scaled(scaled(y, b), a);
    EXPECT_THAT(read(y), ElementsAre(a + b, 2 * (a + b)));
    EXPECT_THAT(read(z), ElementsAre(a * b * (a + b), 2 * a * b * (a + b)));
  };
  step(2, 2);
  const DrainReport first = inspect(lazy());
  const std::uint64_t compiled = lazy().runtime().counters().compiled;
  for (const auto& [a, b] : {std::pair(2., 3.), {3., 3.}, {0., -0.}, {1., 1.}, {5., 4.}})
    step(a, b);
  EXPECT_EQ(inspect(lazy()).plan_misses, first.plan_misses);
  EXPECT_EQ(lazy().runtime().counters().compiled, compiled);
}

TEST(Stream, TheNumbersOfALaunchAreFew) {
  // Each goes into the metadata of its launch, which is small where it is to be fast.
  Value y = given({1}, {1});
  test::counters();
  for (int i = 0; i < 100; ++i) y = scaled(y, i % 2 == 0 ? 2 : 0.5);
  EXPECT_THAT(read(y), ElementsAre(1));
  EXPECT_EQ(inspect(lazy()).blocks.size(), 4U);
}

TEST(Stream, WhetherAResultIsHeldBelongsToTheForm) {
  const auto run = [](bool hold) {
    const Value x = given({3}, {1});
    Value middle = twice(x);
    const Value end = plus(middle, x);
    if (!hold) middle = Value();
    EXPECT_THAT(read(end), ElementsAre(9));
    if (hold) {
      EXPECT_THAT(read(middle), ElementsAre(6));
    }
  };
  run(false);
  run(true);
  run(false);
}

TEST(Stream, MoreOperandsThanAnAdapterBindsAreSplit) {
  const auto count = lazy().limits().storage_buffers + 3;
  std::vector<Value> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(given({float(i), 1}, {2}));
  test::counters();
  Value sum = all[0];
  for (std::uint32_t i = 1; i < count; ++i) sum = plus(sum, all[i]);
  const auto n = static_cast<float>(count);
  EXPECT_THAT(read(sum), ElementsAre(n * (n - 1) / 2, n));
  EXPECT_EQ(inspect(lazy()).launches, 2U);
}

TEST(Stream, MuchQueuedWorkRunsByItself) {
  Value y = given({0}, {1});
  test::counters();
  const std::uint64_t before = lazy().runtime().counters().launches;
  std::vector<Value> held;
  for (std::size_t i = 0; i <= Stream::most_queued; ++i) held.push_back(twice(y));
  EXPECT_GT(lazy().runtime().counters().launches, before);
}

TEST(Stream, AFaultReachesWhatDependsOnItAndNothingElse) {
  const Value x = given({1, 2}, {2});
  test::counters();
  const Value good = twice(x);
  const Value bad = broken(good);
  const Value worse = plus(bad, good);
  const Value worst = twice(worse);
  const Value fine = plus(good, x);
  EXPECT_THAT(read(fine), ElementsAre(3, 6));
  EXPECT_THAT(message_of<KernelError>([&] { read(bad); }), HasSubstr("broken: on purpose"));
  EXPECT_THAT(message_of<KernelError>([&] { read(worst); }), HasSubstr("broken: on purpose"));
  EXPECT_THAT(message_of<KernelError>([&] { read(twice(worst)); }), HasSubstr("broken: on purpose"))
      << "later, too";
  EXPECT_THAT(read(good), ElementsAre(2, 4));
}

TEST(Stream, AFaultInsideABlockSparesItsOtherResults) {
  const Value bad = broken(given({1}, {1}));
  EXPECT_THROW(read(bad), KernelError);
  const Value x = given({1}, {1});
  const Value fine = twice(x);
  const Value touched = plus(fine, bad);
  EXPECT_THROW(read(touched), KernelError);
  EXPECT_THAT(read(fine), ElementsAre(2));
}

TEST(Stream, WhatCannotBePlannedFailsWithItsFirstCause) {
  const Value x = given({1, 2}, {2});
  const Value counts = [] {
    const Client client(lazy().shared_runtime(), "test");
    const std::vector<std::int32_t> numbers{1, 2};
    return Value(client.create(std::span<const std::int32_t>(numbers), {2}));
  }();
  const std::vector<Value> in{x, counts};
  for (const bool at_places : {false, true}) {
    const ElementwiseCall call{body_of([](Expr a, Expr b) { return a + b; }), {}, at_places, {}};
    const Value y = record({"mixed", call}, lazy(), in, {&x.spec(), 1}).front();
    const Value z = twice(y);
    EXPECT_THAT(message_of<DTypeError>([&] { (void)read(z); }), HasSubstr("mixed: "));
    EXPECT_THAT(read(twice(x)), ElementsAre(2, 4));
  }
}

TEST(Stream, ANameThatACallerMakesUpIsKeptWithItsCall) {
  const Value x = given({1, 2}, {2});
  const auto call = [&](const std::string& name, bool fail) {
    const LaunchFunction run = [fail](Client&, std::span<const RawTensor> in) {
      if (fail) throw std::runtime_error("on purpose");
      return std::vector{in[0]};
    };
    return Stream::of(lazy().runtime()).launch(name, lazy(), {&x, 1}, {&x.spec(), 1}, run).front();
  };
  test::counters();
  for (int i = 0; i < 3; ++i) {
    const std::string name = "number " + std::to_string(i);
    EXPECT_THAT(read(call(name, false)), ElementsAre(1, 2));
    EXPECT_THAT(ops_of(inspect(lazy())), ElementsAre(name));
    EXPECT_THAT(message_of<Error>([&] { read(call(name, true)); }), HasSubstr(name + ": "));
  }
}

TEST(Stream, WhatMadeOnlyInputsThatNoBodyReadsIsNotRun) {
  const Value x = given({1, 2}, {2});
  int calls = 0;
  const auto counted = [&] {
    const LaunchFunction run = [&](Client&, std::span<const RawTensor> in) {
      ++calls;
      return std::vector{in[0]};
    };
    return Stream::of(lazy().runtime())
        .launch("counted", lazy(), {&x, 1}, {&x.spec(), 1}, run)
        .front();
  };
  const auto first = [](Expr a, Expr) { return a; };
  Value y = counted();
  y = twice(y);
  y = apply("first", first, {x, y});
  y = twice(y);
  EXPECT_THAT(read(y), ElementsAre(2, 4));
  EXPECT_EQ(calls, 0);
  EXPECT_THAT(ops_of(inspect(lazy())), ElementsAre("twice", "first", "twice"));
}

TEST(Stream, AnEagerDeviceThrowsAtTheCall) {
  const Value x = given({1, 2}, {2});
  const auto call = [&](const Device& on) {
    return Stream::of(lazy().runtime())
        .launch("broken", on, {&x, 1}, {&x.spec(), 1},
                [](Client&, std::span<const RawTensor>) -> std::vector<RawTensor> {
                  throw KernelError("now");
                });
  };
  EXPECT_THROW(call(lazy().eager()), KernelError);
  EXPECT_NO_THROW(call(lazy()));
}

TEST(Stream, ARuleThatReadsWhileTheQueueRunsGetsAnError) {
  const Value x = given({1, 2}, {2});
  Value other;
  const Value y =
      Stream::of(lazy().runtime())
          .launch("reads", lazy(), {&x, 1}, {&x.spec(), 1},
                  [&](Client&, std::span<const RawTensor> in) -> std::vector<RawTensor> {
                    (void)read(other);
                    return {in[0]};
                  })
          .front();
  other = twice(x);
  EXPECT_THAT(message_of<Error>([&] { read(y); }), HasSubstr("a rule may not read tensors"));
  EXPECT_THAT(read(other), ElementsAre(2, 4));
}

TEST(Stream, ResultsByHandAreComparedWithWhatWasPromised) {
  const Value x = given({1, 2}, {2});
  const TensorSpec wrong{{3}, DType::f32};
  const Value y =
      Stream::of(lazy().runtime())
          .launch("liar", lazy(), {&x, 1}, {&wrong, 1},
                  [](Client&, std::span<const RawTensor> in) { return std::vector{in[0]}; })
          .front();
  EXPECT_THAT(message_of<ShapeError>([&] { read(y); }),
              AllOf(HasSubstr("liar"), HasSubstr("f32 [3]"), HasSubstr("f32 [2]")));
}

TEST(Stream, TensorsOfAnotherDeviceAreRefusedByName) {
  const Device other = webgpu::device({.f16 = false});  // another runtime than that of other tests
  const Client client(other.shared_runtime(), "test");
  const Value theirs(client.zeros({{2}, DType::f32}));
  const Value ours = given({1, 2}, {2});
  const auto launch = [&](const Device& on, const Value& x) {
    const LaunchFunction run = [](Client&, std::span<const RawTensor> in) {
      return std::vector{in[0]};
    };
    const std::array in{ours, x};
    (void)Stream::of(lazy().runtime()).launch("by_hand", on, in, {&x.spec(), 1}, run);
  };
  EXPECT_THAT(message_of<DeviceError>([&] { launch(lazy(), theirs); }),
              HasSubstr("by_hand: input 1 is on another device (webgpu: "));
  EXPECT_THAT(message_of<DeviceError>([&] { launch(other, ours); }),
              HasSubstr("by_hand: the result is on another device (webgpu: "));
  EXPECT_THAT(message_of<DeviceError>([&] { (void)plus(ours, theirs); }),
              HasSubstr("plus: input 1"));
  Stream& stream = Stream::of(lazy().runtime());
  EXPECT_THROW((void)stream.view("theirs", theirs, theirs.layout()), DeviceError);
  EXPECT_THAT(read(plus(ours, ours)), ElementsAre(2, 4));
}

TEST(Stream, MemoryGoesAtTheLastUse) {
  constexpr std::int64_t n = 1 << 16;
  const Value x = given(std::vector<float>(n, 1), {n});
  const std::uint64_t before = test::counters().bytes_in_use;
  Value y = twice(x);
  for (int i = 0; i < 3; ++i)
    y = twice(transposed(
        Stream::of(lazy().runtime()).view("reshape", y, *y.layout().reshape({256, 256}))));
  EXPECT_EQ(read(y)[0], 16);
  EXPECT_EQ(test::counters().bytes_in_use, before + n * 4);
}

TEST(Stream, WorkThatNobodyCanReadHoldsNothing) {
  std::weak_ptr<Runtime> runtime;
  {
    const Device own = webgpu::device({.f16 = false});  // another runtime than that of other tests
    const Client client(own.shared_runtime(), "test");
    const Value x(client.zeros({{4}, DType::f32}));
    (void)apply("twice", [](Expr v) { return v + v; }, {x}, own.lazy());
    runtime = own.shared_runtime();
  }
  EXPECT_TRUE(runtime.expired());
}

TEST(Stream, ThreadsShareIt) {
  const Value x = given({1, 2, 3}, {3});
  std::vector<std::thread> threads;
  std::array<std::vector<float>, 4> results;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 30; ++round) {
        Value y = x;
        for (std::size_t i = 0; i <= t; ++i) y = twice(y);
        const Value unused = twice(y);
        results[t] = read(y);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t)
    EXPECT_EQ(results[t][2], 3 * static_cast<float>(2 << t));
}

TEST(Stream, ATensorDroppedByOneThreadIsReadByAnother) {
  for (int round = 0; round < 20; ++round) {
    Value y = twice(given({1, 2}, {2}));
    std::thread other([mine = y] { EXPECT_THAT(read(mine), ElementsAre(2, 4)); });
    y = Value();
    other.join();
  }
}

}  // namespace
}  // namespace kiln
