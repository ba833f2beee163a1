#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kiln/fusion/batch.hpp"
#include "kiln/fusion/inspect.hpp"

namespace kiln {

class TraceSpan;

/// The queue of one opened device, in order. Operations wait here until somebody reads, or until
/// there are many; then those whose results somebody can still read run, fused. Safe to use from
/// several threads.
class Stream final : public RuntimeExtension {
 public:
  explicit Stream(Runtime& runtime) : runtime_(runtime) {}
  static Stream& of(Runtime& runtime) { return runtime.extension<Stream>(); }

  /// Queues an operation by hand: a function that launches what it takes, on inputs that share
  /// `device`. Shape and dtype of its results are compared with `out` when it has run. On an eager
  /// device it runs now.
  std::vector<Value> launch(std::string_view name, const Device& device,
                            std::span<const Value> inputs, std::span<const TensorSpec> out,
                            LaunchFunction function);

  /// Queues `record`, which is no view; see kiln::record.
  std::vector<Value> append(const OpRecord& record, const Device& device,
                            std::span<const Value> inputs, std::span<const TensorSpec> out);
  /// The same elements seen otherwise. Throws ShapeError that begins with `op` where there are none
  /// at some place of `layout`.
  Value view(std::string_view op, const Value& value, const Layout& layout);

  /// Runs what is queued now. What goes wrong is kept with the results it concerns. Throws Error if
  /// a rule calls it while the queue runs.
  void drain();
  void flush() override { drain(); }
  /// Runs what is queued if `storage` still is. Throws what went wrong on the way to it.
  void settle(const Storage& storage);

  /// What the last drain did.
  [[nodiscard]] DrainReport last_drain() const;

  /// So many queued operations, or bytes of their results, run at once.
  static constexpr std::size_t most_queued = 1024;
  static constexpr std::uint64_t most_queued_bytes = std::uint64_t{16} << 30;
  /// So much memory plans may take, and the forms they are found by: those used last are kept. A
  /// plan takes some 2 KB an operation.
  static constexpr std::size_t most_plan_bytes = std::size_t{64} << 20;

  // For handles.
  void handle_made() { handles_.fetch_add(1, std::memory_order_relaxed); }
  void handle_gone();

 private:
  struct LastDrain {
    fusion::PlanPtr plan;
    std::vector<std::uint64_t> launches;
    DrainReport counts;
  };

  std::size_t take(Batch& batch);
  void run_batch(Batch& batch, std::size_t queued, TraceSpan& span);
  [[noreturn]] void refuse_device(std::string_view op, const Runtime& other,
                                  std::string_view what) const;
  fusion::PlanPtr plan_of(Batch& batch, bool& known);

  Runtime& runtime_;
  std::mutex queue_mutex_;
  std::vector<QueuedOp> queue_;
  std::uint64_t queued_bytes_ = 0;
  std::atomic<std::int64_t> handles_ = 0;

  std::mutex drain_mutex_;  // guards what follows; taken before queue_mutex_
  std::uint64_t batches_ = 0;
  fusion::PlanCache plans_{most_plan_bytes};

  mutable std::mutex report_mutex_;
  LastDrain last_;
};

}  // namespace kiln
