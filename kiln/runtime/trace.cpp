#include "kiln/runtime/trace.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "kiln/runtime/trace_log.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

thread_local TraceEvent* innermost = nullptr;

std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> threads = 0;
  thread_local const std::uint32_t number = ++threads;
  return number;
}

[[noreturn]] void refuse(const std::string& file) {
  throw Error(fmt::format("trace: cannot write \"{}\": {}", file, std::strerror(errno)));
}

}  // namespace

Trace::Trace(std::string file) : file_(std::move(file)) {
  errno = 0;
  if (!std::ofstream(file_, std::ios::binary | std::ios::app)) refuse(file_);
  begin_ = TraceLog::shared().start();
}

Trace::~Trace() {
  try {
    stop();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A destructor cannot throw: stop() reports the error.
  }
}

void Trace::stop() {
  if (!std::exchange(running_, false)) return;
  const std::string text = trace_json(TraceLog::shared().stop(), begin_);
  errno = 0;
  std::ofstream out(file_, std::ios::binary);
  out << text;
  out.close();
  if (!out) refuse(file_);
}

void trace_by_environment() {
  static const std::unique_ptr<Trace> trace = [] {
    const char* file = std::getenv("KILN_TRACE");  // NOLINT(concurrency-mt-unsafe): read once
    return file == nullptr || *file == '\0' ? nullptr : std::make_unique<Trace>(file);
  }();
}

std::string_view current_trace_span() {
  return innermost == nullptr ? std::string_view() : innermost->name;
}

void TraceSpan::begin(std::string_view verb, std::string_view object) {
  auto event = std::make_unique<TraceEvent>();
  event->name = verb;
  if (!object.empty()) event->name.append(" ").append(object);
  event->track = thread_number();
  event->begin = host_nanoseconds();
  event_ = event.release();
  outer_ = std::exchange(innermost, event_);
}

void TraceSpan::add(std::string_view key, std::uint64_t value) {
  event_->args.emplace_back(key, value);
}

void TraceSpan::end() noexcept {
  const std::unique_ptr<TraceEvent> event(event_);
  innermost = outer_;
  event->duration = host_nanoseconds() - event->begin;
  try {
    TraceLog::shared().add(std::move(*event));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // There is no memory: the span is lost, and the program goes on.
  }
}

}  // namespace kiln
