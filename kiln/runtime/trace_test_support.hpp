#pragma once
/// For tests: traces to files that go when the test ends, and what is in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln::test {

using Json = nlohmann::json;

/// A path of the running test's own.
class TraceFile {
 public:
  TraceFile() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "." + test->name() + ".json";
    std::ranges::replace(name, '/', '_');
    path_ = std::filesystem::path(testing::TempDir()) / ("kiln_" + name);
    std::filesystem::remove(path_);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }
  /// Fails the test if it is no JSON.
  [[nodiscard]] Json read() const {
    std::ifstream in(path_);
    Json json = Json::parse(in, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << path_ << " is no JSON";
    return json;
  }

 private:
  std::filesystem::path path_;
};

struct Span {
  std::string name;
  int group = 0;  // 1: threads, 2: devices
  int track = 0;
  double begin = 0;
  double end = 0;
  Json args;

  [[nodiscard]] bool within(const Span& outer) const {
    return track == outer.track && group == outer.group && begin >= outer.begin && end <= outer.end;
  }
};

inline std::vector<Span> spans_of(const Json& trace, int group = 1) {
  std::vector<Span> out;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != group) continue;
    const double begin = event.at("ts");
    const double duration = event.at("dur");
    out.push_back({event.at("name"), group, event.at("tid"), begin, begin + duration + 1e-6,
                   event.at("args")});
  }
  return out;
}

inline std::vector<Span> spans_named(const Json& trace, const std::string& name) {
  std::vector<Span> out = spans_of(trace);
  std::erase_if(out, [&](const Span& span) { return span.name != name; });
  return out;
}

}  // namespace kiln::test
