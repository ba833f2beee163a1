#include "kiln/dispatch/reduction/reduction_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "kiln/dispatch/words.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

constexpr std::int64_t any_splits = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t wanted_threads = 1 << 18;  // what fills a large GPU

/// The innermost step that is not 0; the largest number if there is none.
std::int64_t inner_stride(std::span<const std::int64_t> strides) {
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    if (strides[axis] != 0) return strides[axis];
  }
  return std::numeric_limits<std::int64_t>::max();
}

/// How many different elements the axes reach.
std::int64_t distinct(const CoalescedAxes& axes, std::size_t operand) {
  std::int64_t n = 1;
  for (std::size_t axis = 0; axis < axes.rank; ++axis)
    n *= axes.of(operand)[axis] == 0 ? 1 : axes.sizes[axis];
  return n;
}

/// Whether whole vec4 of the operand can be read along the reduced elements.
bool reads_quads(const CoalescedAxes& kept, const CoalescedAxes& reduced, std::size_t operand,
                 std::int64_t offset) {
  const auto aligned = [](std::int64_t stride) { return stride % 4 == 0; };
  const auto along = reduced.of(operand);
  return along.back() == 1 && offset % 4 == 0 &&
         std::ranges::all_of(along.first(along.size() - 1), aligned) &&
         std::ranges::all_of(kept.of(operand), aligned);
}

/// Takes steps of `width` elements, if every operand can be reached so.
bool take_steps(ReductionPass& pass, int width) {
  const CoalescedAxes& reduced = pass.reduced;
  if (width > 1 && (reduced.rank == 0 || reduced.sizes[reduced.rank - 1] % width != 0 ||
                    !pass.reduced_places.by_four()))
    return false;
  pass.reach.clear();
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    const auto reach = reach_of(pass.kept, pass.reduced, i, pass.inputs[i].layout.offset, width);
    if (!reach) return false;
    pass.reach.push_back(*reach);
  }
  pass.width = width;
  return true;
}

/// Enough lanes that each takes about four steps. A workgroup has several teams if
/// that still keeps every part of the GPU busy.
void choose_team(ReductionPass& pass, std::uint32_t most) {
  std::uint32_t lanes = std::min(8U, most);
  while (lanes * 2 <= most && std::int64_t{lanes} * 4 * pass.width < pass.chunk) lanes *= 2;
  const bool many = pass.kept.count() * pass.splits * lanes >= wanted_threads;
  pass.lanes = lanes;
  pass.workgroup = many ? most : std::max(lanes, std::min(64U, most));
}

/// Throws UnsupportedError if the adapter would cut a thread's loops short. That
/// cannot happen with parts, but the index of an extreme is found in one pass.
void require_rounds(const ReductionPass& pass, const Limits& limits) {
  const std::int64_t lanes = pass.variant == Variant::rows ? pass.lanes : 1;
  const std::int64_t rounds = pass.chunk / (lanes * pass.width * 4) + 64;  // and what comes after
  if (limits.loop_rounds == 0 || rounds <= limits.loop_rounds) return;
  throw UnsupportedError(
      fmt::format("{}: {} elements would be combined by loops of {} rounds, "
                  "and this adapter ends "
                  "them silently after {}",
                  pass.op, pass.reduced.count(), rounds, limits.loop_rounds));
}

/// Rows if the reduced elements lie next to each other, columns if the kept ones
/// do. Split, up to `most_splits`, if there are too few threads to fill a GPU.
void choose(ReductionPass& pass, std::int64_t most_splits, const Limits& limits) {
  const std::int64_t outputs = pass.kept.count();
  const std::int64_t count = pass.reduced.count();
  // With many threads for each row loops stay short, if a column may not be split;
  // see Limits::loop_rounds.
  const bool long_loop = most_splits == 1 && count > 32768;
  const bool rows =
      long_loop || (lies_in_rows(pass.kept, pass.reduced) && (count > 32 || outputs < 1024));
  pass.variant = rows ? Variant::rows : Variant::columns;
  if (!take_steps(pass, 4)) take_steps(pass, 1);
  const std::int64_t share = rows ? 4096 : 64;
  const std::int64_t threads = rows ? outputs * 256 : outputs;
  if (threads < wanted_threads && count > 2 * share) {
    pass.splits =
        std::min({ceil_div(count, share), ceil_div(wanted_threads, threads), most_splits});
  }
  pass.chunk = ceil_div(ceil_div(count, pass.splits), pass.width) * pass.width;
  if (count > 0) pass.splits = ceil_div(count, pass.chunk);  // no part without elements
  const std::uint32_t most = std::min(256U, limits.workgroup_invocations);
  pass.workgroup = most;
  pass.lanes = most;
  if (rows) choose_team(pass, most);
  require_rounds(pass, limits);
}

}  // namespace

bool lies_in_rows(const CoalescedAxes& kept, const CoalescedAxes& reduced) {
  std::int64_t most = 0;
  bool rows = true;
  for (std::size_t i = 0; i < kept.strides.size(); ++i) {
    const std::int64_t size = distinct(kept, i) * distinct(reduced, i);
    if (size <= most) continue;
    most = size;
    rows = inner_stride(reduced.of(i)) <= inner_stride(kept.of(i));
  }
  return rows;
}

std::optional<Reach> reach_of(const CoalescedAxes& kept, const CoalescedAxes& reduced,
                              std::size_t operand, std::int64_t offset, int width) {
  const auto along = reduced.of(operand);
  const bool fixed = std::ranges::all_of(along, [](std::int64_t stride) { return stride == 0; });
  // If nothing is reduced, there may be nothing to read.
  if (fixed && reduced.count() > 0) return Reach::fixed;
  if (width == 1) return Reach::strided;
  if (along.back() == 0) return Reach::repeat;
  return reads_quads(kept, reduced, operand, offset) ? std::optional(Reach::quad) : std::nullopt;
}

ReductionPass first_pass(const ReductionCall& call, std::span<const RawTensor> inputs,
                         const Limits& limits) {
  ReductionPass pass{.op = call.op,
                     .combine = call.reduction.combine,
                     .element = call.dtype,
                     .scale = call.reduction.scale,
                     .before = call.before,
                     .params = call.params,
                     .inputs = {inputs.begin(), inputs.end()},
                     .kept = CoalescedAxes(inputs.size()),
                     .reduced = CoalescedAxes(inputs.size())};
  std::vector<Layout> layouts;
  layouts.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    layouts.push_back(seen_by(call.before, i, inputs[i].layout, call.shape));
  if (call.before != nullptr) {
    pass.kept_places = {*call.before, call.shape, call.reduction.axes, false};
    pass.reduced_places = {*call.before, call.shape, call.reduction.axes, true};
  }
  for (int axis = 0; axis < call.shape.rank(); ++axis) {
    const bool away = call.reduction.axes[static_cast<std::size_t>(axis)];
    (away ? pass.reduced : pass.kept).push(call.shape, axis, layouts);
  }
  constexpr std::int64_t overshoot = 1 << 14;  // a step past the end must not wrap
  (void)word_of_size(call.op, pass.reduced.count() + overshoot);
  const bool arg = pass.combine == Combine::argmax || pass.combine == Combine::argmin;
  choose(pass, arg ? 1 : any_splits, limits);
  if (pass.splits > 1) {
    pass.scale = 1;
    pass.value = is_float(call.dtype) ? DType::f32 : call.dtype;
  }
  return pass;
}

TensorSpec parts_of(const ReductionPass& pass) {
  return {{pass.kept.count(), pass.splits}, pass.value};
}

ReductionPass second_pass(const ReductionPass& first, double scale, const Limits& limits) {
  const Layout& parts = first.outputs[0].layout;
  ReductionPass pass{.op = first.op,
                     .combine = first.combine,
                     .element = first.value,
                     .scale = scale,
                     .inputs = first.outputs,
                     .kept = CoalescedAxes(1),
                     .reduced = CoalescedAxes(1)};
  pass.kept.push(parts.shape, 0, {&parts, 1});
  pass.reduced.push(parts.shape, 1, {&parts, 1});
  choose(pass, 1, limits);
  return pass;
}

}  // namespace kiln::dispatch
