#include "kiln/dispatch/wgsl/rows/fold_text.hpp"

#include <fmt/format.h>

#include <vector>

#include "kiln/dispatch/wgsl/store_text.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

constexpr std::string_view least_order = "i32(-0x7fffffff - 1)";
constexpr std::string_view most_order = "0x7fffffff";

class FoldText {
 public:
  FoldText(const RowPass& pass, std::size_t s, TeamFolds& team)
      : pass_(pass), fold_(pass.call.folds[s]), s_(s), team_(team) {}

  /// Declares foldS, without its scale.
  std::string total() {
    const bool extreme = fold_.combine == Combine::max || fold_.combine == Combine::min;
    if (extreme && is_float(fold_.element)) return extreme_of_floats();
    return folded(fmt::format("fold{}", s_), [](const std::string& x) { return x; });
  }

  /// The root of the sum of squares. As in a reduction, squares out of the range of f32 are summed
  /// again, scaled by a power of two. Here all are summed twice, because a team may not part at a
  /// barrier.
  std::string norm(std::string& value) {
    std::string text = folded(fmt::format("fold{}", s_),
                              [](const std::string& x) { return fmt::format("({0} * {0})", x); });
    text += fmt::format(
        "  let in_range{0} = bitcast<u32>(fold{0}) < 0x7f800000u && fold{0} > 0x1p-60f;\n"
        "  let large{0} = fold{0} > 1.0f;\n"
        "  let factor{0} = select(select(0x1p80f, 0x1p-80f, large{0}), 1.0f, in_range{0});\n",
        s_);
    const std::string again = fmt::format("again{}", s_);
    text += folded(again, [&](const std::string& x) {
      return fmt::format("({0} * factor{1} * ({0} * factor{1}))", x, s_);
    });
    value = fmt::format(
        "select(sqrt({0} * params.scale{1} * params.scale{1}) * select(0x1p-80f, 0x1p80f, "
        "large{1}), sqrt(fold{1}) * params.scale{1}, in_range{1})",
        again, s_);
    return text;
  }

 private:
  /// The thread's items of step q.
  [[nodiscard]] std::vector<std::string> items(std::uint32_t q) const {
    std::vector<std::string> all;
    for (int lane = 0; lane < pass_.width; ++lane)
      all.push_back(fmt::format("s{}_{}_{}.item", s_, q, lane));
    return all;
  }

  [[nodiscard]] Combining combining() const {
    const std::string_view with = fold_.combine == Combine::max   ? "max"
                                  : fold_.combine == Combine::min ? "min"
                                                                  : "+";
    return {std::string(wgsl_compute_type(fold_.element)), with};
  }

  /// Combines what `change` makes of the items of a thread, then those of the team.
  template <class Change>
  std::string folded(std::string_view name, Change change) {
    const Combining combine = combining();
    std::string text =
        fmt::format("  var {}_own = bitcast<{}>(params.neutral{});\n", name, combine.type, s_);
    for (std::uint32_t q = 0; q < pass_.steps; ++q) {
      std::vector<std::string> changed;
      for (const std::string& item : items(q)) changed.push_back(change(item));
      const std::string step = pass_.width == 1 ? changed[0]
                                                : combine(combine(changed[0], changed[1]),
                                                          combine(changed[2], changed[3]));
      const std::string next = combine(fmt::format("{}_own", name), step);
      text += pass_.exact ? fmt::format("  {}_own = {};\n", name, next)
                          : fmt::format("  {0}_own = select({0}_own, {1}, i{2});\n", name, next, q);
    }
    return text +
           fmt::format("  let {} = {};\n", name, team_.call(combine, fmt::format("{}_own", name)));
  }

  /// The largest or the smallest item, which is a NaN if one of them is; 0 is larger than -0. Three
  /// orders of the bits of all items tell, at one instruction each. Steps past the end are of valid
  /// elements, which may count twice. The team compares integers in the order of the floats.
  std::string extreme_of_floats() {
    const bool max = fold_.combine == Combine::max;
    std::string text = fmt::format(
        "  var high{0} = {1};\n  var low{0} = 0xffffffffu;\n  var top{0} = 0u;\n", s_, least_order);
    for (std::uint32_t q = 0; q < pass_.steps; ++q) {
      for (const std::string& item : items(q)) {
        text += fmt::format(
            "  high{0} = max(high{0}, bitcast<i32>({1}));\n"
            "  low{0} = min(low{0}, bitcast<u32>({1}));\n"
            "  top{0} = max(top{0}, bitcast<u32>({1}));\n",
            s_, item);
      }
    }
    const std::string own =
        max ? fmt::format("select(low{0}, bitcast<u32>(high{0}), high{0} >= 0)", s_)
            : fmt::format("select(low{0}, top{0}, top{0} >= 0x80000000u)", s_);
    const std::string order = fmt::format(
        "select(bits{0} ^ ((bits{0} >> 31u) & 0x7fffffff), {1}, high{0} > 0x7f800000 || top{0} > "
        "0xff800000u)",
        s_, max ? most_order : least_order);
    return text +
           fmt::format(
               "  let bits{0} = bitcast<i32>({1});\n  let order{0} = {2};\n"
               "  let fold{0} = bitcast<f32>(order{0} ^ ((order{0} >> 31u) & 0x7fffffff));\n",
               s_, own, team_.call({"i32", max ? "max" : "min"}, order));
  }

  const RowPass& pass_;
  const Fold& fold_;
  std::size_t s_;
  TeamFolds& team_;
};

}  // namespace

std::string fold_text(const RowPass& pass, std::size_t s, std::size_t slot, TeamFolds& team,
                      std::set<std::string>& helpers) {
  const Fold& fold = pass.call.folds[s];
  FoldText writer(pass, s, team);
  std::string text;
  std::string value = fmt::format("fold{}", s);
  if (fold.combine == Combine::norm) {
    text = writer.norm(value);
  } else {
    text = writer.total();
    if (is_float(fold.element)) value += fmt::format(" * params.scale{}", s);
  }
  value = wgsl_load(fold.value, wgsl_store(fold.element, fold.value, value));
  value = wgsl_rounded(fold.value, value, helpers);
  return text + fmt::format("  let v{} = {};\n", slot, value);
}

}  // namespace kiln::dispatch::wgsl
