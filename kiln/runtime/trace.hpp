#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

struct TraceEvent;

/// Records what the host and the devices do, from its construction until stop() or its end, and
/// writes a file that ui.perfetto.dev and chrome://tracing read. Each thread has a track: drains of
/// the queue, planning, the blocks of a plan, compilations, submits, waits. Each device has one
/// with its launches, which need timestamps (`limits().timestamps`); the file says which devices
/// had none. Several traces may record at once; each gets all that begins in its time.
///
/// Traced launches run in a pass of their own each, for their timestamps: a program that is traced
/// is slower, and the times between launches are not those of the untraced one. Events are kept in
/// memory until the last trace stops.
///
///     {
///       const Trace trace("step.json");
///       training_step();
///     }  // written
///
/// KILN_TRACE=file in the environment records from the first opened device on, and writes when the
/// process ends normally. A file that cannot be written is an error of opening the device then.
class Trace {
 public:
  /// Starts. Throws Error, naming the file, if it cannot be written.
  explicit Trace(std::string file);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  /// Stops; a file that cannot be written is lost without a word. Call stop() to know.
  ~Trace();

  /// Waits for the launches that are timed, and writes the file. Throws Error, naming the file, if
  /// it cannot. Does nothing the second time.
  void stop();

  /// Whether any trace records.
  [[nodiscard]] static bool recording() noexcept { return active.load(std::memory_order_relaxed); }

 private:
  friend class TraceLog;
  static inline std::atomic<bool> active = false;

  std::string file_;
  std::uint64_t begin_ = 0;
  bool running_ = true;
};

/// A stretch of time of the calling thread, from construction to end, for the traces that record.
/// It must end on the thread that made it, after those made within it. Costs one relaxed load while
/// nothing records.
///
///     for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
///       TraceSpan span("epoch");
///       span.arg("number", epoch);
///       ...
///     }
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view name) {
    if (Trace::recording()) begin(name, {});
  }
  /// Named "verb object", which is put together only if something records.
  TraceSpan(std::string_view verb, std::string_view object) {
    if (Trace::recording()) begin(verb, object);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (event_ != nullptr) end();
  }

  /// Whether something records it: for arguments that cost something.
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
