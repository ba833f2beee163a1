// Runs the operations of a failed block one by one. So only what depends on the fault fails, and
// the error has the name of the operation.
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

void Execution::run_alone(const Node& block) {
  const auto stored = [&](std::int32_t value) {
    return std::ranges::find(block.out, value) != block.out.end();
  };
  for (const Step& step : steps_alone(block)) {
    std::vector<RawTensor> results;
    std::exception_ptr cause;
    try {
      results = compute_step(step);
      for (RawTensor& result : results) result = dispatch::make_dense(result);
    } catch (...) {
      cause = named_exception(plan_.ops[at(step.record)], {});
    }
    for (std::size_t i = 0; i < step.out.size(); ++i) {
      const std::int32_t value = step.out[i];
      if (!stored(value)) {
        alone_[value] = {cause ? nullptr : results[i].buffer, cause};
      } else if (cause) {
        fail({&value, 1}, cause);
      } else {
        publish({&value, 1}, {&results[i], 1});
      }
    }
    for (const std::int32_t value : step.last_read) alone_.erase(value);
  }
  alone_.clear();
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
