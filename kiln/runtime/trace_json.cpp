#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kiln/runtime/trace_log.hpp"

namespace kiln {
namespace {

// Tracks are grouped: threads under one heading, devices under another.
constexpr int host_group = 1;
constexpr int device_group = 2;

/// Length of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(text[i]);
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  std::uint32_t point = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
    point = point << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point >= least[length] && point <= 0x10FFFF && !surrogate ? length : 0;
}

/// The text as a JSON string. What is no UTF-8 becomes U+FFFD.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char first = text.front();
    if (length == 0) {
      out += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      out.append({'\\', first});
    } else if (length == 1 && static_cast<unsigned char>(first) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

std::string name_of(std::string_view what, int group, std::uint32_t track, std::string_view name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                     group, track, quoted(name));
}

std::string args_of(const TraceEvent& event) {
  std::string out;
  if (event.on_device) out = fmt::format("\"kernel\":{}", quoted(event.kernel));
  for (const auto& [key, value] : event.args)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", quoted(key), value);
  return out;
}

std::string line_of(const TraceEvent& event, std::uint64_t begin) {
  const auto microseconds = [](std::uint64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  };
  return fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                     quoted(event.name), event.on_device ? device_group : host_group, event.track,
                     microseconds(event.begin - begin), microseconds(event.duration),
                     args_of(event));
}

std::string notes_of(const TraceData& data) {
  std::string out =
      R"("launches":"each in a pass of its own; begin times are within a wake-up of the host")";
  for (const auto& [device, why] : data.notes)
    out += fmt::format(",{}:{}", quoted(device), quoted(why));
  return out;
}

}  // namespace

std::string trace_json(TraceData data, std::uint64_t begin) {
  // Viewers nest what they meet in this order.
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
