#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

/// One run of a queue. Every thread that works for it knows it, because the run calls rules, and a
/// rule that read a queued tensor would wait for itself.
class QueueRun {
 public:
  QueueRun() = default;
  QueueRun(const QueueRun&) = delete;
  QueueRun& operator=(const QueueRun&) = delete;

  /// The run for which this thread works; null if there is none.
  static QueueRun* current() { return working_for; }

  /// While it lives, this thread works for `run`.
  class Scope {
   public:
    explicit Scope(QueueRun* run) : before_(std::exchange(working_for, run)) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { working_for = before_; }

   private:
    QueueRun* before_;
  };

  /// For runtimes: counts one more launch or buffer for the run for which this thread works.
  static void count_launch() { count(&QueueRun::launches_); }
  static void count_allocation() { count(&QueueRun::allocations_); }
  /// For what may take long: a part of it is done.
  static void count_step() { count(&QueueRun::steps_); }
  /// Grows while something is done for the run.
  [[nodiscard]] std::uint64_t progress() const {
    return launches() + allocations() + steps_.load(std::memory_order_relaxed);
  }
  /// Notes the operation that it is at.
  void begin(std::string_view op) {
    const std::lock_guard lock(mutex_);
    at_ = op;
    ++steps_;
  }
  [[nodiscard]] std::string at() const {
    const std::lock_guard lock(mutex_);
    return at_;
  }

  [[nodiscard]] std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t allocations() const {
    return allocations_.load(std::memory_order_relaxed);
  }

  /// Keeps an object whose destructor is code of another library. It ends with this run, after the
  /// run's work and every Scope.
  void leave(std::shared_ptr<void> owner) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      owners_.push_back(std::move(owner));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
      // It ends here. If it calls kiln in a way that would wait, that is refused, as in a rule.
    }
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  static void count(Count QueueRun::* of) {
    if (working_for != nullptr) (working_for->*of).fetch_add(1, std::memory_order_relaxed);
  }
  static inline thread_local constinit QueueRun* working_for = nullptr;

  Count launches_ = 0;
  Count allocations_ = 0;
  Count steps_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::string at_;
  std::vector<std::shared_ptr<void>> owners_;
};

}  // namespace kiln
