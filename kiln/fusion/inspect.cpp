#include "kiln/fusion/inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "kiln/fusion/stream.hpp"

namespace kiln {
namespace {

constexpr std::array kind_names{"elementwise", "reduction", "kernel"};

std::string_view name_of(BlockReport::Kind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::string joined(const BlockReport& block) {
  return fmt::format("{}", fmt::join(block.ops, " + "));
}

}  // namespace

BlockBytes block_bytes(const fusion::Plan& plan, std::size_t n) {
  const fusion::Node& node = plan.graph.nodes[n];
  BlockBytes bytes;
  for (const fusion::Use& use : node.in) bytes.read += bytes_reached(plan.graph, use);
  for (const std::int32_t value : node.out)
    bytes.written += dispatch::bytes_of(plan.graph.spec(value));
  return bytes;
}

DrainReport report_of(const fusion::Plan& plan, std::span<const std::uint64_t> launches,
                      DrainReport counts) {
  std::vector<std::ptrdiff_t> maker(plan.graph.values.size(), -1);
  for (std::size_t n = 0; n < plan.graph.nodes.size(); ++n) {
    const fusion::Node& node = plan.graph.nodes[n];
    const BlockBytes bytes = block_bytes(plan, n);
    BlockReport block{.kind = static_cast<BlockReport::Kind>(node.work.index()),
                      .ops = {},
                      .launches = launches[n],
                      .bytes_read = bytes.read,
                      .bytes_written = bytes.written,
                      .after = {},
                      .fault = plan.faults.of(n)};
    for (const std::int32_t record : node.records)
      block.ops.push_back(plan.ops[static_cast<std::size_t>(record)]);
    std::set<std::size_t> after;
    for (const fusion::Use& use : node.in) {
      const std::ptrdiff_t from = maker[static_cast<std::size_t>(use.value)];
      if (from >= 0) after.insert(static_cast<std::size_t>(from));
    }
    block.after.assign(after.begin(), after.end());
    for (const std::int32_t value : node.out)
      maker[static_cast<std::size_t>(value)] = static_cast<std::ptrdiff_t>(n);
    counts.blocks.push_back(std::move(block));
  }
  return counts;
}

DrainReport inspect(const Device& device) {
  device.flush();
  return Stream::of(device.runtime()).last_drain();
}

std::string to_table(const DrainReport& report) {
  std::string text = fmt::format("{:<12} {:>8} {:>14} {:>14}  {}\n", "block", "launches", "read",
                                 "written", "operations");
  for (const BlockReport& block : report.blocks) {
    text += fmt::format("{:<12} {:>8} {:>14} {:>14}  {}\n", name_of(block.kind), block.launches,
                        block.bytes_read, block.bytes_written, joined(block));
    if (!block.fault.empty())
      text += fmt::format("  its operations run one by one, because it failed: {}\n", block.fault);
  }
  return text + fmt::format(
                    "{} operations queued, {} of them dead; {} launches, {} buffers taken, {} "
                    "results in place; plan {} ({} hits, {} misses)\n",
                    report.queued, report.dead, report.launches, report.allocations,
                    report.in_place, report.plan_hit ? "known" : "new", report.plan_hits,
                    report.plan_misses);
}

std::string to_dot(const DrainReport& report) {
  std::string text = "digraph drain {\n  node [shape=box];\n";
  for (std::size_t n = 0; n < report.blocks.size(); ++n) {
    const BlockReport& block = report.blocks[n];
    text += fmt::format("  b{} [label=\"{}: {}\\n{} B read, {} B written\"];\n", n,
                        name_of(block.kind), joined(block), block.bytes_read, block.bytes_written);
    for (const std::size_t from : block.after) text += fmt::format("  b{} -> b{};\n", from, n);
  }
  return text + "}\n";
}

}  // namespace kiln
