// Runs the operations of a failed block one by one. So only what depends on the fault fails, and
// the error has the name of the operation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/fusion/batch.hpp"
#include "kiln/fusion/passes/rewrite.hpp"
#include "kiln/support/rule_error.hpp"

namespace kiln {

using namespace fusion;

namespace {

/// Whether the results `wanted` of an operation depend on its input `i`.
bool reads(const Node& node, std::span<const std::int32_t> wanted, std::size_t i) {
  const auto* work = std::get_if<Elementwise>(&node.work);
  if (work == nullptr) return true;
  return std::ranges::any_of(wanted, [&](std::int32_t value) {
    const auto root =
        static_cast<std::size_t>(std::ranges::find(node.out, value) - node.out.begin());
    return work->body.body->uses(root, static_cast<int>(i));
  });
}

}  // namespace

/// The operations that the block's results need, computed from what the block reads. An operation
/// may stand in several blocks. Its other inputs and results belong to those, and may be gone.
std::vector<Execution::Step> Execution::steps_alone(const Node& block) const {
  std::unordered_set<std::int32_t> wanted(block.out.begin(), block.out.end());
  std::unordered_set<std::int32_t> given;
  for (const Use& use : block.in) given.insert(use.value);
  std::vector<Step> steps;
  for (const std::int32_t record : std::views::reverse(block.records)) {
    const Node& node = plan_.source.nodes[at(record)];
    Step step{record, {}, {}};
    for (const std::int32_t value : node.out) {
      if (wanted.contains(value)) step.out.push_back(value);
    }
    if (step.out.empty()) continue;
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const std::int32_t value = plan_.original[at(node.in[i].value)];
      if (!given.contains(value) && reads(node, step.out, i) && wanted.insert(value).second)
        step.last_read.push_back(value);
    }
    steps.push_back(std::move(step));
  }
  std::ranges::reverse(steps);
  return steps;
}

/// Runs the operations of block `n` one by one, because of `cause`, or of one that is known. If all
/// of them run, the fault is that of the block.
void Execution::run_alone(std::size_t n, const std::exception_ptr& cause) {
  const Node& block = plan_.graph.nodes[n];
  operation_failed_ = false;
  for (const Step& step : steps_alone(block)) run_step(step);
  if (cause && !operation_failed_) note_fault(n, cause);
  for (const std::int32_t value : block.out) {
    const Made& made = alone_[value];
    if (made.error) {
      fail({&value, 1}, made.error);
    } else if (made.elements != nullptr) {
      publish(value, made.elements);
    }
  }
  alone_.clear();
}

void Execution::run_step(const Step& step) {
  try {
    const std::vector<RawTensor> results = compute_step(step);
    for (std::size_t i = 0; i < step.out.size(); ++i)
      alone_[step.out[i]] = {dispatch::make_dense(results[i]).buffer, nullptr};
  } catch (...) {
    operation_failed_ = true;
    const std::exception_ptr cause = named_exception(plan_.ops[at(step.record)], {});
    for (const std::int32_t value : step.out) alone_[value] = {nullptr, cause};
  }
  for (const std::int32_t value : step.last_read) alone_.erase(value);
}

/// Every operation of the block has run, but the block has not: that is an error, or is said in
/// reports, unless memory or a device was missing.
void Execution::note_fault(std::size_t n, const std::exception_ptr& cause) {
  const Node& block = plan_.graph.nodes[n];
  if (!is_lasting(cause)) return;
  if (!faults_are_errors()) return plan_.faults.add(n, text_of(cause));
  std::vector<std::string_view> ops;
  for (const std::int32_t record : block.records) ops.push_back(plan_.ops[at(record)]);
  const std::exception_ptr error = block_error(fmt::format("{}", fmt::join(ops, "+")), cause);
  for (const std::int32_t value : block.out) alone_[value] = {nullptr, error};
}

/// Computes the wanted results of one operation.
std::vector<RawTensor> Execution::compute_step(const Step& step) {
  const Node& node = plan_.source.nodes[at(step.record)];
  const auto* work = std::get_if<Elementwise>(&node.work);
  std::vector<std::size_t> wanted;
  for (const std::int32_t value : step.out)
    wanted.push_back(
        static_cast<std::size_t>(std::ranges::find(node.out, value) - node.out.begin()));
  if (work == nullptr) {
    const std::vector<RawTensor> all = compute_record(step.record);
    std::vector<RawTensor> results;
    for (const std::size_t i : wanted) results.push_back(all[i]);
    return results;
  }
  // Only that part of its body: the other inputs may be gone.
  BodyBuilder builder(plan_.source);
  std::vector<std::int32_t> in;
  for (const Use& use : node.in) in.push_back(builder.input(use));
  const auto made = builder.add(work->body, in, dtypes_of(plan_.source, node.out));
  std::vector<std::int32_t> roots;
  for (const std::size_t i : wanted) roots.push_back(made[i]);
  BodyBuilder::Built built = builder.finish(roots);
  built.body = with_loads(built.body, built.in);
  return dispatch::run_elementwise(plan_.ops[at(step.record)], shared_, built.body.body,
                                   params(built.body), inputs(built.in), work->shape,
                                   dtypes_of(plan_.source, step.out));
}

}  // namespace kiln
