#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kiln/runtime/json_text.hpp"
#include "kiln/runtime/trace_log.hpp"

namespace kiln {
namespace {

// Tracks are grouped: threads under one heading, devices under another.
constexpr int host_group = 1;
constexpr int device_group = 2;

std::string name_of(std::string_view what, int group, std::uint32_t track, std::string_view name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                     group, track, json_text(name));
}

std::string args_of(const TraceEvent& event) {
  std::string out;
  if (event.on_device) out = fmt::format("\"kernel\":{}", json_text(event.kernel));
  for (const auto& [key, value] : event.args)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", json_text(key), value);
  return out;
}

std::string line_of(const TraceEvent& event, std::uint64_t begin) {
  const auto microseconds = [](std::uint64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  };
  return fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                     json_text(event.name), event.on_device ? device_group : host_group,
                     event.track, microseconds(event.begin - begin), microseconds(event.duration),
                     args_of(event));
}

std::string notes_of(const TraceData& data) {
  std::string out =
      R"("launches":"each in a pass of its own; begin times are within a wake-up of the host")";
  for (const auto& [device, why] : data.notes)
    out += fmt::format(",{}:{}", json_text(device), json_text(why));
  return out;
}

}  // namespace

std::string trace_json(TraceData data, std::uint64_t begin) {
  // Viewers nest spans that come in this order.
  std::ranges::sort(data.events, [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
  });
  std::string out = "{\"traceEvents\":[\n" + name_of("process_name", host_group, 0, "host") +
                    ",\n" + name_of("process_name", device_group, 0, "devices");
  for (const auto& [track, name] : data.devices)
    out += ",\n" + name_of("thread_name", device_group, track, name);
  std::set<std::uint32_t> threads;
  for (const TraceEvent& event : data.events) {
    if (event.begin < begin) continue;
    if (!event.on_device && threads.insert(event.track).second) {
      out += ",\n" +
             name_of("thread_name", host_group, event.track, fmt::format("thread {}", event.track));
    }
    out += ",\n" + line_of(event, begin);
  }
  return out + "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{" + notes_of(data) + "}}\n";
}

}  // namespace kiln
