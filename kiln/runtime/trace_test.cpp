#include "kiln/runtime/trace.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "kiln/runtime/trace_log.hpp"
#include "kiln/runtime/trace_test_support.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"
#include "kiln/runtime/webgpu/testing.hpp"

namespace kiln {
namespace {

using test::Json;
using test::Span;
using test::spans_named;
using test::spans_of;
using test::TraceFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using wgpu::message_of;

template <class Action>
Json traced(Action&& action) {
  const TraceFile file;
  Trace trace(file.path());
  action();
  trace.stop();
  return file.read();
}

std::vector<std::string> names_of(const std::vector<Span>& spans) {
  std::vector<std::string> out;
  for (const Span& span : spans) out.push_back(span.name);
  return out;
}

TEST(Trace, AnyTextIsAName) {
  const std::string odd = "a \"quoted\" \\ name\n\t\x01 \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\xA5";
  const Json trace = traced([&] { const TraceSpan span(odd); });
  EXPECT_THAT(spans_named(trace, odd), SizeIs(1));
}

TEST(Trace, WhatIsNoUtf8IsReplaced) {
  const Json trace = traced([] { const TraceSpan span("a\xFF\xC0\x80\xED\xA0\x80z\xE2\x82"); });
  std::string expected = "a";
  for (int i = 0; i < 6; ++i) expected += "\xEF\xBF\xBD";
  expected += "z\xEF\xBF\xBD\xEF\xBF\xBD";
  EXPECT_THAT(names_of(spans_of(trace)), ElementsAre(expected));
}

TEST(Trace, SpansLieWithinEachOther) {
  const Json trace = traced([] {
    TraceSpan outer("outer");
    outer.arg("number", 7);
    {
      const TraceSpan inner("compile", "matmul");
      EXPECT_EQ(current_trace_span(), "compile matmul");
    }
    EXPECT_EQ(current_trace_span(), "outer");
  });
  const std::vector<Span> outer = spans_named(trace, "outer");
  const std::vector<Span> inner = spans_named(trace, "compile matmul");
  ASSERT_THAT(outer, SizeIs(1));
  ASSERT_THAT(inner, SizeIs(1));
  EXPECT_TRUE(inner[0].within(outer[0])) << trace.dump(1);
  EXPECT_EQ(outer[0].args.at("number"), 7);
  EXPECT_EQ(current_trace_span(), "");
}

TEST(Trace, EventsAreInOrderOuterFirst) {
  const Json trace = traced([] {
    const TraceSpan outer("outer");
    {
      const TraceSpan span("one");
    }
    const TraceSpan span("two");
  });
  EXPECT_THAT(names_of(spans_of(trace)), ElementsAre("outer", "one", "two"));
}

TEST(Trace, EachThreadHasATrack) {
  const Json trace = traced([] {
    const TraceSpan here("here");
    std::thread([] { const TraceSpan there("there"); }).join();
  });
  ASSERT_THAT(spans_of(trace), SizeIs(2));
  const int here = spans_named(trace, "here").at(0).track;
  const int there = spans_named(trace, "there").at(0).track;
  EXPECT_NE(here, there);
  std::vector<int> named;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name") named.push_back(event.at("tid"));
  }
  EXPECT_THAT(named, ::testing::UnorderedElementsAre(here, there));
}

TEST(Trace, HasWhatBeganInItsTime) {
  const TraceFile file;
  std::optional<TraceSpan> before(std::in_place, "before");
  Trace trace(file.path());
  EXPECT_TRUE(Trace::recording());
  before.reset();
  {
    const TraceSpan during("during");
  }
  std::optional<TraceSpan> open(std::in_place, "still open");
  trace.stop();
  EXPECT_FALSE(Trace::recording());
  open.reset();
  {
    const TraceSpan after("after");
  }
  trace.stop();  // does nothing
  EXPECT_THAT(names_of(spans_of(file.read())), ElementsAre("during"));
}

TEST(Trace, TwoMayRecordAtOnce) {
  const TraceFile file;
  Trace outer(file.path());
  {
    const TraceSpan span("first");
  }
  const Json inner = traced([] { const TraceSpan span("second"); });
  {
    const TraceSpan span("third");
  }
  outer.stop();
  EXPECT_THAT(names_of(spans_of(inner)), ElementsAre("second"));
  EXPECT_THAT(names_of(spans_of(file.read())), ElementsAre("first", "second", "third"));
}

TEST(Trace, AFileThatCannotBeWrittenIsNamed) {
  const std::string message = message_of<Error>([] { Trace("/nowhere/at/all.json"); });
  EXPECT_THAT(message, HasSubstr("\"/nowhere/at/all.json\""));
  EXPECT_THAT(message, HasSubstr("No such file"));
  EXPECT_FALSE(Trace::recording());
}

TEST(Trace, AFileThatCanNoLongerBeWrittenIsNamed) {
  const TraceFile folder;
  std::filesystem::create_directory(folder.path());
  const std::string file = folder.path() + "/trace.json";
  Trace trace(file);
  const Trace unheard(file);
  std::filesystem::remove_all(folder.path());
  EXPECT_THAT(message_of<Error>([&] { trace.stop(); }), HasSubstr(file));
}

TEST(Trace, SaysWhichDevicesHaveNoLaunches) {
  const TraceDevice plain("plain", [] {});
  const TraceDevice broken("broken", [] { throw Error("it is gone"); });
  const Json trace = traced([&] { plain.note("no timestamps"); });
  EXPECT_EQ(trace.at("otherData").at("plain"), "no timestamps");
  EXPECT_EQ(trace.at("otherData").at("broken"), "it is gone");
}

class TracedDevice : public ::testing::Test {
 protected:
  std::optional<Device> device = webgpu::device();
  bool timestamps = device->limits().timestamps;
  BufferPtr a = wgpu::upload<float>(device->runtime(), {1, 2, 3});
  BufferPtr b = device->runtime().allocate(12);

  void launch(std::string_view label) {
    Runtime& runtime = device->runtime();
    // Labels tell equal kernels not apart.
    const std::string expression = "x + 1.0 /* " + std::string(label) + " */";
    const auto kernel = runtime.compile(wgpu::map_id(expression), label);
    wgpu::launch_map(runtime, kernel, a, b);
  }
};

TEST_F(TracedDevice, HostSpansAreThere) {
  const Json trace = traced([&] {
    launch("small");
    device->synchronize();
    wgpu::download(device->runtime(), b, 3);
  });
  EXPECT_THAT(spans_named(trace, "compile small"), SizeIs(1));
  EXPECT_THAT(spans_named(trace, "synchronize"), SizeIs(1));
  EXPECT_THAT(spans_named(trace, "wait for a read-back"), SizeIs(1));
  EXPECT_FALSE(spans_named(trace, "submit").empty());
}

TEST_F(TracedDevice, LaunchesHaveTheDevicesTrack) {
  launch("untraced");
  device->synchronize();
  const Json trace = traced([&] {
    launch("small");
    const TraceSpan span("block");
    launch("other");
  });
  launch("untraced");
  const std::vector<Span> launches = spans_of(trace, 2);
  if (!timestamps) {
    EXPECT_THAT(launches, IsEmpty());
    EXPECT_THAT(trace.at("otherData").dump(), HasSubstr("no timestamps"));
    return;
  }
  ASSERT_THAT(names_of(launches), ElementsAre("small", "block"));
  EXPECT_EQ(launches[0].args.at("kernel"), "small");
  EXPECT_EQ(launches[1].args.at("kernel"), "other");
  EXPECT_GE(launches[0].begin, spans_named(trace, "compile small").at(0).end);
  EXPECT_GE(launches[1].begin, launches[0].begin);
  EXPECT_LE(launches[1].end, spans_named(trace, "gather launch times").at(0).end);
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name" && event.at("pid") == 2) {
      EXPECT_EQ(event.at("args").at("name"), to_string(*device));
    }
  }
}

TEST_F(TracedDevice, WhoTimesLaunchesGetsHisOwn) {
  if (!timestamps) GTEST_SKIP() << "this adapter has no timestamps";
  Runtime& runtime = device->runtime();
  std::vector<LaunchTime> times;
  const Json trace = traced([&] {
    launch("traced");
    runtime.time_launches(true);
    launch("both");
    runtime.time_launches(false);
  });
  times = runtime.launch_times();
  ASSERT_THAT(times, SizeIs(1));
  EXPECT_EQ(times[0].label, "both");
  EXPECT_THAT(names_of(spans_of(trace, 2)), ElementsAre("traced", "both"));
}

TEST_F(TracedDevice, MayEndBeforeTheTrace) {
  const Json trace = traced([&] {
    launch("small");
    a.reset();
    b.reset();
    device.reset();
  });
  if (timestamps) {
    EXPECT_THAT(names_of(spans_of(trace, 2)), ElementsAre("small"));
  }
}

TEST_F(TracedDevice, MayBeLost) {
  const Json trace = traced([&] {
    launch("small");
    wgpu::lose_device(*device);
  });
  EXPECT_THAT(spans_named(trace, "compile small"), SizeIs(1));
  EXPECT_THAT(spans_of(trace, 2), IsEmpty());
  EXPECT_THAT(trace.at("otherData").value(to_string(*device), ""), Not(IsEmpty()));
}

TEST_F(TracedDevice, ThreadsLaunchWhileTracesStartAndStop) {
  std::thread other([&] {
    for (int i = 0; i < 300; ++i) launch("small");
  });
  for (int i = 0; i < 5; ++i) traced([&] { launch("other"); });
  other.join();
}

/// Opens a device, launches, and ends, with the device held by a static or not.
[[noreturn]] void run_program(bool held) {
  static std::optional<Device> kept;
  {
    const Device device = webgpu::device();
    Runtime& runtime = device.runtime();
    const BufferPtr a = wgpu::upload<float>(runtime, {1});
    const BufferPtr b = runtime.allocate(4);
    wgpu::launch_map(runtime, runtime.compile(wgpu::map_id("x"), "only"), a, b);
    if (held) kept = device;
  }
  std::exit(0);
}

class TraceByEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { unsetenv("KILN_TRACE"); }
};

class ProgramTracedByEnvironment : public TraceByEnvironment,
                                   public ::testing::WithParamInterface<bool> {};

TEST_P(ProgramTracedByEnvironment, IsWrittenWhenTheProcessEnds) {
  const TraceFile file;
  setenv("KILN_TRACE", file.path().c_str(), 1);
  EXPECT_EXIT(run_program(GetParam()), ::testing::ExitedWithCode(0), "");
  const Json trace = file.read();
  EXPECT_THAT(spans_named(trace, "compile only"), SizeIs(1));
  if (webgpu::device().limits().timestamps) {
    EXPECT_THAT(names_of(spans_of(trace, 2)), ElementsAre("only"));
  }
}

TEST_F(TraceByEnvironment, AFileThatCannotBeWrittenIsAnErrorOfOpeningADevice) {
  setenv("KILN_TRACE", "/nowhere/at/all.json", 1);
  const auto open = [] {
    try {
      const Device device = webgpu::device();
    } catch (const Error& error) {
      std::exit(std::string_view(error.what()).find("/nowhere/at/all.json") != std::string::npos);
    }
  };
  EXPECT_EXIT(open(), ::testing::ExitedWithCode(1), "");
}

INSTANTIATE_TEST_SUITE_P(HeldByAStatic, ProgramTracedByEnvironment, ::testing::Bool());

}  // namespace
}  // namespace kiln
