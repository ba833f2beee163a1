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

/// The queue of one opened device, in order. Operations wait here until somebody reads or until
/// there are many. Then those whose results can still be read run, fused. Safe to use from
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
  /// The same elements under another layout. Throws ShapeError that begins with `op` if `layout`
  /// reaches outside of them.
  Value view(std::string_view op, const Value& value, const Layout& layout);

  /// Runs what is queued now. An error is kept with the results that it affects. Throws Error if a
  /// rule calls it while the queue runs.
  void drain();
  void flush() override { drain(); }
  /// Runs the queue if `storage` is still queued. Throws the error of computing it, if any.
  void settle(const Storage& storage);

  /// What the last drain did.
  [[nodiscard]] DrainReport last_drain() const;

  /// The queue runs when it has so many operations, or so many bytes of results.
  static constexpr std::size_t most_queued = 1024;
  static constexpr std::uint64_t most_queued_bytes = std::uint64_t{16} << 30;
  /// The most memory for plans and their forms; those used last are kept. A plan takes about 2 KB
  /// for each operation.
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
