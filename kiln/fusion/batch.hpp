#pragma once
/// The work of one drain: queued operations by number, and the blocks that they become.
#include <exception>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/fusion/inspect.hpp"
#include "kiln/fusion/plan.hpp"
#include "kiln/fusion/storage.hpp"

namespace kiln {

class QueueRun;
class Stream;

/// The live operations of one drain. Values and scalars are numbered in the order in which they are
/// met, so work of the same form has the same numbers.
struct Batch {
  std::uint64_t drain = 0;  ///< its number
  std::vector<QueuedOp> ops;
  std::vector<StoragePtr> values;                ///< by number
  std::vector<char> made;                        ///< by number: whether one of the ops gives it
  std::vector<double> params;                    ///< by number
  std::vector<std::vector<std::int32_t>> slots;  ///< of each op: the numbers of its scalars
  std::string form;                              ///< equal for work that has the same plan

  /// Numbers everything and writes the form.
  void number();
  /// The graph for the passes: a node for each operation. Call number() first.
  [[nodiscard]] fusion::Graph graph(Runtime& runtime) const;
  /// Makes `cause` the error of every result that is not computed yet.
  void fail(const std::exception_ptr& cause) const;
};

/// Bytes that a block moves.
struct BlockBytes {
  std::uint64_t read = 0;     ///< of distinct elements, if each is read once
  std::uint64_t written = 0;  ///< of results that are stored
};
BlockBytes block_bytes(const fusion::Plan& plan, std::size_t n);

/// What a plan's blocks did. `counts` is the rest of the report.
DrainReport report_of(const fusion::Plan& plan, std::span<const std::uint64_t> launches,
                      DrainReport counts);

/// Runs the blocks of a plan.
class Execution {
 public:
  /// For one run: all arguments must outlive it.
  Execution(Stream& stream, Runtime& runtime, Batch& batch, const fusion::Plan& plan,
            QueueRun& run);
  /// An error is kept with the values that it affects.
  void run();

  /// Launches of each block, and how many results took the buffer of an input.
  [[nodiscard]] const std::vector<std::uint64_t>& launches() const { return launches_; }
  [[nodiscard]] std::uint64_t in_place() const { return in_place_; }

 private:
  void run_block(std::size_t n);
  bool await_inputs(std::size_t n);
  void end(std::int32_t value);
  std::vector<RawTensor> compute(std::size_t n);
  std::vector<RawTensor> elementwise(std::size_t n, const fusion::Elementwise& work);
  std::vector<RawTensor> reduce(std::size_t n, const fusion::Reduce& work);
  std::vector<RawTensor> call(std::size_t n, const fusion::Call& work);
  std::vector<RawTensor> rows(std::size_t n, const fusion::Rows& work);
  std::optional<dispatch::FusedEpilogue> epilogue_of(const fusion::Node& node,
                                                     const fusion::NodeEpilogue& epilogue);
  [[nodiscard]] std::vector<dispatch::FusedProducer> producers_of(const fusion::Node& node,
                                                                  const fusion::Call& work) const;
  [[nodiscard]] std::vector<RawTensor> operands_of(const fusion::Node& node,
                                                   const fusion::Call& work) const;
  std::vector<RawTensor> compute_record(std::int32_t record);
  [[nodiscard]] RawTensor input(const fusion::Use& use) const;
  [[nodiscard]] std::vector<RawTensor> inputs(std::span<const fusion::Use> uses) const;

  /// One operation of a block that failed: its wanted results, and the values that no later
  /// operation of the block reads.
  struct Step {
    std::int32_t record = -1;
    std::vector<std::int32_t> out;
    std::vector<std::int32_t> last_read;
  };
  void run_alone(std::size_t n, const std::exception_ptr& cause);
  [[nodiscard]] std::vector<Step> steps_alone(const fusion::Node& block) const;
  void run_step(const Step& step);
  void note_fault(std::size_t n, const std::exception_ptr& cause);
  std::vector<RawTensor> compute_step(const Step& step);

  [[nodiscard]] std::vector<double> params(const fusion::BoundBody& body) const;
  std::vector<std::int32_t> reusable_inputs(std::size_t n) const;
  void publish(std::int32_t value, const BufferPtr& elements);
  void fail(std::span<const std::int32_t> values, const std::exception_ptr& cause);
  [[nodiscard]] Storage* storage(std::int32_t value) const {
    return batch_.values[static_cast<std::size_t>(value)].get();
  }

  Stream& stream_;
  std::shared_ptr<Runtime> shared_;
  Batch& batch_;
  const fusion::Plan& plan_;
  QueueRun& run_;
  std::vector<std::vector<std::int32_t>> copies_;  ///< of each value, those that are held
  std::vector<std::uint64_t> launches_;
  std::unordered_map<std::uint64_t, std::exception_ptr>
      given_up_;  ///< drains, not waited for again
  std::uint64_t in_place_ = 0;
  bool overwriting_ = false;  ///< the running block may have changed what it reads

  /// What passes between the operations of a failed block.
  struct Made {
    BufferPtr elements;
    std::exception_ptr error;  ///< where there are none
  };
  std::unordered_map<std::int32_t, Made> alone_;
  bool operation_failed_ = false;  ///< one of the block's operations, run by itself
};

}  // namespace kiln
