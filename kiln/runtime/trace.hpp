#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

struct TraceEvent;

/// Records what the host and the devices do, from its construction until stop() or its end, and
/// writes a file for ui.perfetto.dev and chrome://tracing. Each thread has a track: drains of the
/// queue, planning, the blocks of a plan, compilations, submits, waits. Each device has a track of
/// its launches, which needs timestamps (`limits().timestamps`); the file says which devices have
/// none. Several traces may record at once; each gets all that begins while it records.
///
/// Each traced launch runs in a compute pass of its own, for its timestamps. So a traced program is
/// slower, and the gaps between its launches differ from those of the untraced one. Events stay in
/// memory until the last trace stops.
///
///     {
///       const Trace trace("step.json");
///       device.synchronize();
///     }  // written
///
/// The environment variable KILN_TRACE=file records from the first opened device on, and writes
/// when the process ends normally. Opening the device throws if the file cannot be written.
class Trace {
 public:
  /// Starts. Throws Error, naming the file, if it cannot be written.
  ///
  ///     Trace("/no/such/folder/step.json");   // throws Error
  explicit Trace(std::string file);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  /// Stops. It cannot throw: call stop() to learn whether the file was written.
  ~Trace();

  /// Waits for the launches that are timed, and writes the file. Throws Error, naming the file, if
  /// it cannot. Does nothing the second time.
  ///
  ///     Trace trace("step.json");
  ///     device.synchronize();
  ///     trace.stop();
  void stop();

  /// Whether any trace records.
  ///
  ///     const Trace trace("step.json");
  ///     Trace::recording();   // [true]
  [[nodiscard]] static bool recording() noexcept { return active.load(std::memory_order_relaxed); }

 private:
  friend class TraceLog;
  static inline std::atomic<bool> active = false;

  std::string file_;
  std::uint64_t begin_ = 0;
  bool running_ = true;
};

/// A span of time on the calling thread, from construction to destruction, in every trace that
/// records. It must end on the thread that made it, after the spans made within it. While nothing
/// records it costs one relaxed load.
///
///     for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
///       TraceSpan span("epoch");
///       span.arg("number", epoch);
///       device.synchronize();
///     }
class TraceSpan {
 public:
  /// Begins. `name` may end before the span does.
  explicit TraceSpan(std::string_view name) {
    if (Trace::recording()) begin(name, {});
  }
  /// Begins a span named "verb object". The name is put together only if something records.
  ///
  ///     const TraceSpan span("load", "digits.csv");
  TraceSpan(std::string_view verb, std::string_view object) {
    if (Trace::recording()) begin(verb, object);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (event_ != nullptr) end();
  }

  /// Whether something records it: for arguments that cost something.
  ///
  ///     TraceSpan span("read");
  ///     if (span.recorded()) span.arg("bytes", 4 * ones({4}).to_vector().size());
  [[nodiscard]] bool recorded() const { return event_ != nullptr; }
  /// A number to show with the span. `key` must last, as a literal does.
  void arg(std::string_view key, std::uint64_t value) {
    if (event_ != nullptr) add(key, value);
  }

 private:
  void begin(std::string_view verb, std::string_view object);
  void add(std::string_view key, std::uint64_t value);
  void end() noexcept;

  TraceEvent* event_ = nullptr;  // owned
  TraceEvent* outer_ = nullptr;
};

}  // namespace kiln
