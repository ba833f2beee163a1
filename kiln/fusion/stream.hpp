#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/fusion/batch.hpp"
#include "kiln/fusion/inspect.hpp"

namespace kiln {

class QueueRun;
class TraceSpan;

/// The queue of one opened device, in order. Operations wait here until somebody reads or until
/// there are many. Then those whose results can still be read run, fused.
///
/// It is safe to use from several threads, and none waits for another without need. A reader takes
/// from the queue what its own thread queued and what the value needs. It takes it under a lock,
/// and runs it under none. It waits for another thread only if the value needs what that thread has
/// taken.
class Stream final : public RuntimeExtension {
 public:
  /// The queue of a runtime; `of` makes it.
  explicit Stream(Runtime& runtime) : runtime_(runtime) {}
  /// The queue of a runtime. It lasts as long as the runtime.
  ///
  ///     Stream& stream = Stream::of(device.runtime());
  ///     &stream == &Stream::of(device.eager().runtime());   // [true]
  static Stream& of(Runtime& runtime) { return runtime.extension<Stream>(); }

  /// Queues an operation by hand: a function that launches what it takes, on inputs that share
  /// `device`. Shape and dtype of its results are compared with `out` when it has run. On an eager
  /// device it runs now. Throws DeviceError for an input of another device.
  ///
  ///     const AnyTensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, device);
  ///     const auto copy = [](Client& client, std::span<const RawTensor> in) {
  ///       return std::vector{client.contiguous(in[0])};
  ///     };
  ///     const Value input = x.value();
  ///     const TensorSpec out = x.spec();
  ///     Stream& stream = Stream::of(device.runtime());
  ///     const Value y = stream.launch("copy", device, {&input, 1}, {&out, 1}, copy)[0];
  ///     AnyTensor(y, device);   // [1, 2, 3, 4]
  std::vector<Value> launch(std::string_view name, const Device& device,
                            std::span<const Value> inputs, std::span<const TensorSpec> out,
                            LaunchFunction function);

  /// Queues `record`, which is no view; see kiln::record.
  std::vector<Value> append(const OpRecord& record, const Device& device,
                            std::span<const Value> inputs, std::span<const TensorSpec> out);
  /// The same elements under another layout. Throws ShapeError that begins with `op` if `layout`
  /// reaches outside of them.
  Value view(std::string_view op, const Value& value, const Layout& layout);

  /// Runs all that is queued now, whoever queued it. An error is kept with the results that it
  /// affects. Throws Error if a rule calls it while the queue runs.
  void flush() override;
  /// The same, and waits for what other threads run.
  void finish() override;
  /// Computes `storage`, or waits for the thread that does. Throws the error of computing it, if
  /// any.
  void settle(const Storage& storage);
  /// Waits for the drain that makes `storage`. Throws DeviceError, which begins with `who`, if that
  /// drain has done nothing for as long as the device's patience: its rule may wait for the calling
  /// thread.
  void await(std::string_view who, const Storage& storage);
  /// The drain that has taken the operation that makes `storage`; 0 if none has.
  [[nodiscard]] std::uint64_t drain_of(const Storage& storage);

  /// What the drain that ended last did; see inspect().
  ///
  ///     const AnyTensor y = ones({2}, device.lazy()) + 1;
  ///     device.flush();
  ///     Stream::of(device.runtime()).last_drain().blocks.size();   // [1]
  [[nodiscard]] DrainReport last_drain() const;

  /// The queue runs when it has this many operations, or this many bytes of results.
  static constexpr std::size_t most_queued = 1024;
  /// After this many drains that left it to its thread, an operation runs with the next reader.
  static constexpr std::uint8_t most_left = 16;
  static constexpr std::uint64_t most_queued_bytes = std::uint64_t{16} << 30;
  /// The most memory for plans and their forms; those used last are kept. A plan takes about 2 KB
  /// for each operation.
  static constexpr std::size_t most_plan_bytes = std::size_t{64} << 20;

  /// For handles, which count themselves: with the last one all queued work is dropped.
  void handle_made() { handles_.fetch_add(1, std::memory_order_relaxed); }
  void handle_gone();

 private:
  struct LastDrain {
    fusion::PlanPtr plan;
    std::vector<std::uint64_t> launches;
    DrainReport counts;
  };

  /// What a drain takes from the queue: everything; or `needed`, the operations of this thread that
  /// wait for no other drain, and what those read.
  struct Wanted {
    bool all = false;
    bool ready = false;  ///< everything that waits for no other drain
    const Storage* needed = nullptr;
  };
  /// Drains that run.
  struct Running {
    std::uint64_t drain = 0;
    const QueueRun* run = nullptr;
  };
  /// What some of them have done.
  struct Progress {
    std::size_t drains = 0;
    std::uint64_t steps = 0;
    std::string at;  ///< the operation that the earliest of them runs
  };
  void await(std::string_view who, const std::function<bool()>& over,
             const std::function<Progress()>& look);
  Progress progress(std::uint64_t first, std::uint64_t last);
  void make_room();
  [[nodiscard]] bool fuller_than(std::size_t part);
  void drain(const Wanted& wanted);
  [[nodiscard]] bool busy();
  std::size_t take(Batch& batch, const Wanted& wanted, const QueueRun& run);
  void look_for_waits();
  std::size_t look(std::uint64_t drain, const Wanted& wanted);
  void run_batch(Batch& batch, std::size_t queued, QueueRun& run, TraceSpan& span);
  [[noreturn]] void refuse_device(std::string_view op, const Runtime& other,
                                  std::string_view what) const;
  fusion::PlanPtr plan_of(Batch& batch, bool& known);

  Runtime& runtime_;
  std::atomic<std::int64_t> handles_ = 0;

  // No lock is held while rules run, while anything is planned or launched, or while another lock
  // is taken, except a run's own, under which none is.
  std::mutex queue_mutex_;  // guards what follows, and what storages note of `asked`
  std::vector<QueuedOp> queue_;
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t drains_ = 0;
  std::vector<Running> running_;

  std::mutex plan_mutex_;  // guards what follows, and what storages note of `batch`
  fusion::PlanCache plans_{most_plan_bytes};

  mutable std::mutex report_mutex_;
  LastDrain last_;
};

}  // namespace kiln
