#include "kiln/dispatch/wgsl/rows/fold_text.hpp"

#include <fmt/format.h>

#include "kiln/dispatch/wgsl/store_text.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

constexpr std::string_view least_order = "i32(-0x7fffffff - 1)";
constexpr std::string_view most_order = "0x7fffffff";

}  // namespace

/// Whether the fold finds the largest or smallest float by the bits of all items: 0 is larger than
/// -0, and a NaN is the result. Three orders of the bits tell, at one instruction each.
bool FoldText::by_bits() const {
  const bool extreme = fold_.combine == Combine::max || fold_.combine == Combine::min;
  return extreme && is_float(fold_.element);
}

Combining FoldText::combining() const {
  const std::string_view with = fold_.combine == Combine::max   ? "max"
                                : fold_.combine == Combine::min ? "min"
                                                                : "+";
  return {std::string(wgsl_compute_type(fold_.element)), with};
}

/// The thread's items of step q.
std::vector<std::string> FoldText::items(std::uint32_t q) const {
  std::vector<std::string> all;
  for (int lane = 0; lane < pass_.width; ++lane)
    all.push_back(fmt::format("s{}_{}_{}.item", s_, q, lane));
  return all;
}

std::string FoldText::start() const {
  if (!by_bits()) return start(fmt::format("fold{}", s_));
  return fmt::format("  var high{0} = {1};\n  var low{0} = 0xffffffffu;\n  var top{0} = 0u;\n", s_,
                     least_order);
}

std::string FoldText::start(std::string_view name) const {
  return fmt::format("  var {}_own = bitcast<{}>(params.neutral{});\n", name, combining().type, s_);
}

std::string FoldText::add_items() const {
  const std::string_view square = fold_.combine == Combine::norm ? "({0} * {0})" : "{0}";
  if (!by_bits()) return add_items(fmt::format("fold{}", s_), square);
  // Steps past the end are of valid elements, which may count twice.
  std::string text;
  for (std::uint32_t q = 0; q < pass_.steps; ++q) {
    for (const std::string& item : items(q)) {
      text += fmt::format(
          "  high{0} = max(high{0}, bitcast<i32>({1}));\n"
          "  low{0} = min(low{0}, bitcast<u32>({1}));\n"
          "  top{0} = max(top{0}, bitcast<u32>({1}));\n",
          s_, item);
    }
  }
  return text;
}

/// `square`: the format of what is made of an item.
std::string FoldText::add_items(std::string_view name, std::string_view square) const {
  const Combining combine = combining();
  const std::string own = fmt::format("{}_own", name);
  std::string text;
  for (std::uint32_t q = 0; q < pass_.steps; ++q) {
    std::vector<std::string> all = items(q);
    for (std::string& item : all) item = fmt::format(fmt::runtime(square), item);
    const std::string step =
        pass_.width == 1 ? all[0] : combine(combine(all[0], all[1]), combine(all[2], all[3]));
    const std::string next = combine(own, step);
    text += pass_.exact ? fmt::format("  {} = {};\n", own, next)
                        : fmt::format("  {0} = select({0}, {1}, in{2});\n", own, next, q);
  }
  return text;
}

/// Declares NAME, which the team makes of what its threads have combined.
std::string FoldText::folded(std::string_view name) {
  return fmt::format("  let {} = {};\n", name,
                     team_.call(combining(), fmt::format("{}_own", name)));
}

/// The team compares integers in the order of the floats.
std::string FoldText::extreme_of_floats() {
  const bool max = fold_.combine == Combine::max;
  const std::string own =
      max ? fmt::format("select(low{0}, bitcast<u32>(high{0}), high{0} >= 0)", s_)
          : fmt::format("select(low{0}, top{0}, top{0} >= 0x80000000u)", s_);
  const std::string order = fmt::format(
      "select(bits{0} ^ ((bits{0} >> 31u) & 0x7fffffff), {1}, high{0} > 0x7f800000 || top{0} > "
      "0xff800000u)",
      s_, max ? most_order : least_order);
  return fmt::format(
      "  let bits{0} = bitcast<i32>({1});\n  let order{0} = {2};\n"
      "  let fold{0} = bitcast<f32>(order{0} ^ ((order{0} >> 31u) & 0x7fffffff));\n",
      s_, own, team_.call({"i32", max ? "max" : "min"}, order));
}

/// The root of the sum of squares. As in a reduction, squares out of the range of f32 are summed
/// again, scaled by a power of two. Here all are summed twice, because a team may not part at a
/// barrier.
std::string FoldText::norm(std::string& value) {
  const std::string again = fmt::format("again{}", s_);
  const std::string scaled = fmt::format("({{0}} * factor{0} * ({{0}} * factor{0}))", s_);
  value = fmt::format(
      "select(sqrt({0} * params.scale{1} * params.scale{1}) * select(0x1p-80f, 0x1p80f, "
      "large{1}), sqrt(fold{1}) * params.scale{1}, in_range{1})",
      again, s_);
  std::string text = folded(fmt::format("fold{}", s_));  // before the next one: they share rooms
  text += fmt::format(
      "  let in_range{0} = bitcast<u32>(fold{0}) < 0x7f800000u && fold{0} > 0x1p-60f;\n"
      "  let large{0} = fold{0} > 1.0f;\n"
      "  let factor{0} = select(select(0x1p80f, 0x1p-80f, large{0}), 1.0f, in_range{0});\n",
      s_);
  text += start(again) + add_items(again, scaled);
  return text + folded(again);
}

std::string FoldText::finish(std::size_t slot, std::set<std::string>& helpers) {
  std::string value = fmt::format("fold{}", s_);
  std::string text;
  if (fold_.combine == Combine::norm) {
    text = norm(value);
  } else {
    text = by_bits() ? extreme_of_floats() : folded(value);
    if (is_float(fold_.element)) value += fmt::format(" * params.scale{}", s_);
  }
  value = wgsl_load(fold_.value, wgsl_store(fold_.element, fold_.value, value));
  value = wgsl_rounded(fold_.value, value, helpers);
  return text + fmt::format("  let v{} = {};\n", slot, value);
}

}  // namespace kiln::dispatch::wgsl
