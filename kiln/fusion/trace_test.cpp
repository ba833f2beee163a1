#include "kiln/runtime/trace.hpp"
#include "kiln/dispatch/test_support.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/runtime/trace_test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

using test::Json;
using test::Span;
using test::spans_named;
using test::spans_of;
using ::testing::SizeIs;

class TracedDrain : public ::testing::Test {
 protected:
  const Device device = test::device().lazy();
  const Client client{device.shared_runtime(), "test"};
  const std::vector<float> values = test::wave(6);
  const Value x{client.create(std::span<const float>(values), {6})};

  template <class F>
  Value apply(std::string_view name, F f, const Value& in) {
    return record({name, ElementwiseCall{body_of(f), {}}}, device, {&in, 1}, {&in.spec(), 1})
        .front();
  }

  /// Two operations that become one block, and one that nobody can read.
  void work() {
    const Value y = apply("square", [](Expr v) { return v * v; }, x);
    const Value z = apply("add_three", [](Expr v) { return v + 3; }, y);
    (void)apply("unread", [](Expr v) { return v - 1; }, z);
    (void)client.read<float>(z.raw());
  }

  Json trace() {
    const test::TraceFile file;
    Trace recording(file.path());
    work();
    recording.stop();
    return file.read();
  }
};

TEST_F(TracedDrain, ShowsPlanAndBlocksWithinTheDrain) {
  const Json json = trace();
  const std::vector<Span> drains = spans_named(json, "drain");
  const std::vector<Span> plans = spans_named(json, "plan");
  const std::vector<Span> blocks = spans_named(json, "square+add_three");
  ASSERT_THAT(drains, SizeIs(1)) << json.dump(1);
  ASSERT_THAT(plans, SizeIs(1));
  ASSERT_THAT(blocks, SizeIs(1));
  EXPECT_TRUE(plans[0].within(drains[0]));
  EXPECT_TRUE(blocks[0].within(drains[0]));
  EXPECT_LE(plans[0].end, blocks[0].begin + 2e-6);
  EXPECT_EQ(drains[0].args.at("queued"), 3);
  EXPECT_EQ(drains[0].args.at("dead"), 1);
  const BlockReport report = inspect(device).blocks.at(0);
  EXPECT_EQ(blocks[0].args.at("bytes_read"), report.bytes_read);
  EXPECT_EQ(blocks[0].args.at("bytes_written"), report.bytes_written);
  EXPECT_EQ(blocks[0].args.at("launches"), 1);
}

TEST_F(TracedDrain, SaysWhetherThePlanWasKnown) {
  work();
  const Json json = trace();
  EXPECT_EQ(spans_named(json, "drain").at(0).args.at("plan_hit"), 1);
}

TEST_F(TracedDrain, LaunchesAreNamedAsTheirBlock) {
  const Json json = trace();
  const std::vector<Span> launches = spans_of(json, 2);
  if (!device.limits().timestamps) return;
  ASSERT_THAT(launches, SizeIs(1));
  EXPECT_EQ(launches[0].name, "square+add_three");
  EXPECT_GE(launches[0].begin, spans_named(json, "square+add_three").at(0).begin);
}

}  // namespace
}  // namespace kiln
