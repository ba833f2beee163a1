#include "kiln/dispatch/wgsl/rows/rows_kernel.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "kiln/dispatch/wgsl/store_text.hpp"
#include "kiln/scalar/opcode_table.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

/// Writes the kernel. Names: a node's value within the function of a stage, or of a row, is tN, an
/// input's vN; their values for step q are kN_q and eN_q; what a stage's function gives sS_q_LANE.
class RowsText {
 public:
  RowsText(const RowPass& pass, std::span<const DType> inputs, const BodyTypes& types)
      : pass_(pass), call_(pass.call), inputs_(inputs), types_(types) {
    std::vector<std::string> names;
    for (int slot = 0; slot < call_.body->inputs; ++slot) names.push_back(fmt::format("v{}", slot));
    printed_ = print_wgsl(call_.op, *call_.body, types_, names, "params.p", "t");
    helpers_ = printed_.helpers;
  }

  KernelId run(const Limits& limits) && {
    const std::string arrays = declare_arrays();
    Metadata metadata;
    each_number(pass_, types_, [&](auto name, std::string_view type, std::uint32_t word) {
      metadata.add(name(), type, word);
    });
    std::string text = places();
    for (std::size_t s = 0; s < pass_.stages.stages.size(); ++s) text += stage(s);
    text += stores();
    metadata.add_zero_for(helpers_);
    const std::string params =
        metadata.declare(limits, 0, static_cast<std::uint32_t>(id_.bindings.size()), id_);
    const std::string declarations = arrays + params + wgsl_helpers(helpers_) + functions_;
    id_.workgroup = {pass_.workgroup(), 1, 1};
    id_.trusted = true;  // every index is below the sizes for which the operands were laid out
    id_.source = enable_f16(declarations + text) + declarations + rooms() +
                 fmt::format(
                     "@compute @workgroup_size({})\n"
                     "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) "
                     "groups: vec3<u32>,\n"
                     "        @builtin(local_invocation_id) local: vec3<u32>) {{\n{}}}\n",
                     pass_.workgroup(), text);
    return std::move(id_);
  }

 private:
  using Stage = RowStages::Stage;

  [[nodiscard]] const ExprGraph::Node& node(std::int32_t id) const {
    return call_.body->graph->node(id);
  }
  [[nodiscard]] bool per_element(std::int32_t id) const {
    return pass_.stages.per_element[at(id)] != 0;
  }
  [[nodiscard]] bool is_input(std::int32_t id) const { return node(id).op == Opcode::input; }
  [[nodiscard]] std::string_view type_of(std::int32_t id) const {
    return wgsl_compute_type(types_.of(id, DType::f32));
  }
  [[nodiscard]] std::string name_of(std::int32_t id) const {
    return is_input(id) ? fmt::format("v{}", node(id).args[0]) : fmt::format("t{}", id);
  }
  [[nodiscard]] bool is_last(std::size_t s) const { return s == call_.folds.size(); }
  [[nodiscard]] std::string lane_of(int lane) const {
    return pass_.width == 1 ? std::string() : fmt::format("[{}]", lane);
  }

  std::string declare_arrays() {
    std::string text;
    std::uint32_t next = 0;
    std::size_t operand = 0;
    for (; operand < inputs_.size(); ++operand) {
      text += declare_array(
          id_, 0, next++, Access::read,
          {fmt::format("x{}", operand), inputs_[operand], pass_.reach[operand] == Reach::quad});
    }
    for (std::size_t r = 0; r < call_.out.size(); ++r) {
      const bool vec4 = call_.is_full(r) && pass_.reach[operand++] == Reach::quad;
      text += declare_array(id_, 0, next++, Access::read_write,
                            {fmt::format("y{}", r), call_.out[r].dtype, vec4});
    }
    return text;
  }

  /// Which row the thread works on, and where the row begins in each operand.
  [[nodiscard]] std::string places() const {
    std::string text = fmt::format(
        "  let lane = local.x % {0}u;\n  let base = local.x - lane;\n"
        "  let row = (group.y * groups.x + group.x) * {1}u + local.x / {0}u;\n"
        "  let works = row < params.rows;\n  let output = min(row, params.rows - 1u);\n",
        pass_.lanes, pass_.rows);
    text += coordinates("output", "k", pass_.kept.rank);
    const KnownPlaces& places = pass_.kept_places;
    if (places.used != 0) text += coordinates("output", "kg", places.axes.rank, places.outermost);
    places.each_used([&](int axis, std::size_t k) {
      text += fmt::format("  let {}{} = i32(kgc{});\n", wgsl_coordinate, axis, k);
    });
    for (std::size_t i = 0; i < pass_.layouts.size(); ++i) {
      text += fmt::format("  let b{0} = params.o{0}", i);
      for (std::size_t axis = 0; axis < pass_.kept.rank; ++axis) text += step("k", i, axis);
      text += ";\n";
    }
    for (std::uint32_t q = 0; q < pass_.steps; ++q) {
      const std::string place = fmt::format("({}u + lane) * {}u", q * pass_.lanes, pass_.width);
      text += pass_.exact ? fmt::format("  let r{} = {};\n", q, place)
                          : fmt::format(
                                "  let i{0} = {1} < params.count;\n"
                                "  let r{0} = min({1}, params.count - {2}u);\n",
                                q, place, pass_.width);
    }
    return text;
  }

  /// Where operand i's elements of step q are in its array.
  [[nodiscard]] std::string place_of(std::size_t i, std::uint32_t q) const {
    if (pass_.reach[i] == Reach::quad) return fmt::format("(b{} + r{}) / 4u", i, q);
    return fmt::format("b{0} + r{1} * params.rs{0}_0", i, q);
  }

  /// What is computed once a row before the stage, and what it loads.
  std::string before(const Stage& stage) {
    std::string text;
    for (const std::int32_t id : stage.row) {
      if (!is_input(id)) {
        text += printed_.lines[at(id)];
        continue;
      }
      const auto slot = at(node(id).args[0]);
      if (slot >= inputs_.size()) continue;  // a fold's value
      text += fmt::format("  let v{0} = {1};\n", slot,
                          wgsl_load(inputs_[slot], fmt::format("x{0}[b{0}]", slot)));
    }
    for (const std::int32_t id : stage.loads) {
      const auto slot = at(node(id).args[0]);
      for (std::uint32_t q = 0; q < pass_.steps; ++q)
        text += fmt::format("  let e{0}_{1} = x{0}[{2}];\n", slot, q, place_of(slot, q));
    }
    return text;
  }

  /// The nodes that a stage's function gets: what it does not compute itself.
  [[nodiscard]] std::vector<std::int32_t> arguments(const Stage& stage) const {
    std::set<std::int32_t> all;
    const auto add = [&](const auto& self, std::int32_t id) -> void {
      if (std::ranges::find(stage.element, id) != stage.element.end()) return;
      if (is_input(id) || !printed_.lines[at(id)].empty()) {
        all.insert(id);
        return;
      }
      // Printed where it is used, with what it uses.
      for (const std::int32_t operand : operands(node(id))) self(self, operand);
    };
    for (const std::int32_t id : stage.element) {
      for (const std::int32_t operand : operands(node(id))) add(add, operand);
    }
    for (const std::int32_t root : stage.roots) add(add, root);
    return {all.begin(), all.end()};
  }

  /// The axis along the row, if the stage's function is to know its coordinate.
  [[nodiscard]] std::optional<int> known_axis(const Stage& stage) const {
    for (const std::int32_t id : stage.element) {
      if (node(id).op == Opcode::coordinate) return node(id).args[0];
    }
    return std::nullopt;
  }

  /// A member of what a stage's function gives.
  struct Member {
    std::string name;
    std::string type;
    std::string value;
  };

  std::vector<Member> members(std::size_t s, const Stage& stage) {
    std::vector<Member> all;
    for (const std::int32_t id : stage.keeps) {
      if (!is_input(id)) all.push_back({name_of(id), std::string(type_of(id)), name_of(id)});
    }
    if (!is_last(s)) {
      const DType element = call_.folds[s].element;
      const std::string stored = wgsl_store(types_.roots[s], element, printed_.results[s]);
      all.push_back({"item", std::string(wgsl_compute_type(element)),
                     wgsl_rounded(element, wgsl_load(element, stored), helpers_)});
      return all;
    }
    for (std::size_t r = 0; r < call_.out.size(); ++r) {
      if (!call_.is_full(r)) continue;
      const DType dtype = call_.out[r].dtype;
      all.push_back({fmt::format("y{}", r), std::string(wgsl_storage_type(dtype)), result_text(r)});
    }
    return all;
  }

  [[nodiscard]] std::string result_text(std::size_t r) const {
    const std::size_t root = call_.folds.size() + r;
    return wgsl_store(types_.roots[root], call_.out[r].dtype, printed_.results[root]);
  }

  /// The function of a stage, for one element.
  void add_function(std::size_t s, const Stage& stage, std::span<const Member> members,
                    std::span<const std::int32_t> arguments) {
    std::vector<std::string> fields;
    std::vector<std::string> values;
    for (const Member& m : members) {
      fields.push_back(fmt::format("{}: {}", m.name, m.type));
      values.push_back(m.value);
    }
    std::vector<std::string> parameters;
    for (const std::int32_t id : arguments)
      parameters.push_back(fmt::format("{}: {}", name_of(id), type_of(id)));
    if (const auto axis = known_axis(stage))
      parameters.push_back(fmt::format("{}{}: i32", wgsl_coordinate, *axis));
    std::string lines;
    for (const std::int32_t id : stage.element) lines += printed_.lines[at(id)];
    functions_ += fmt::format(
        "struct Stage{0} {{ {1} }}\nfn stage{0}({2}) -> Stage{0} {{\n{3}  return "
        "Stage{0}({4});\n}}\n",
        s, fmt::join(fields, ", "), fmt::join(parameters, ", "), lines, fmt::join(values, ", "));
  }

  /// The argument of a stage's function for one lane of a step.
  [[nodiscard]] std::string argument(std::int32_t id, std::uint32_t q, int lane) const {
    if (!per_element(id)) return name_of(id);
    if (!is_input(id)) return fmt::format("k{}_{}{}", id, q, lane_of(lane));
    const auto slot = at(node(id).args[0]);
    return wgsl_load(inputs_[slot], fmt::format("e{}_{}{}", slot, q, lane_of(lane)));
  }

  std::string stage(std::size_t s) {
    const Stage& stage = pass_.stages.stages[s];
    std::string text = before(stage);
    const std::vector<Member> gives = members(s, stage);
    if (gives.empty()) return text;
    const std::vector<std::int32_t> takes = arguments(stage);
    add_function(s, stage, gives, takes);
    for (std::uint32_t q = 0; q < pass_.steps; ++q) {
      for (int lane = 0; lane < pass_.width; ++lane) {
        std::vector<std::string> all;
        for (const std::int32_t id : takes) all.push_back(argument(id, q, lane));
        if (known_axis(stage)) all.push_back(fmt::format("i32(r{} + {}u)", q, lane));
        text +=
            fmt::format("  let s{0}_{1}_{2} = stage{0}({3});\n", s, q, lane, fmt::join(all, ", "));
      }
      for (const std::int32_t id : stage.keeps) {
        if (!is_input(id))
          text += fmt::format("  let k{}_{} = {};\n", id, q, lanes(s, q, name_of(id), type_of(id)));
      }
    }
    return is_last(s) ? text : text + fold(s);
  }

  /// A member of all lanes of a step, as one vector.
  [[nodiscard]] std::string lanes(std::size_t s, std::uint32_t q, std::string_view member,
                                  std::string_view type) const {
    const auto one = [&](int lane) { return fmt::format("s{}_{}_{}.{}", s, q, lane, member); };
    if (pass_.width == 1) return one(0);
    return fmt::format("vec4<{}>({}, {}, {}, {})", type, one(0), one(1), one(2), one(3));
  }

  std::string combined(const Fold& fold, const std::string& a, const std::string& b) {
    if (fold.combine != Combine::max && fold.combine != Combine::min)
      return fmt::format("({} + {})", a, b);
    const std::string helper =
        fmt::format("kiln_{}_{}", fold.combine == Combine::max ? "max" : "min",
                    wgsl_compute_type(fold.element));
    helpers_.insert(helper);
    return fmt::format("{}({}, {})", helper, a, b);
  }

  /// Combines what `change` makes of the items of a thread, then those of the team.
  template <class Change>
  std::string folded(std::size_t s, std::string_view name, Change change) {
    const Fold& fold = call_.folds[s];
    const std::string type(wgsl_compute_type(fold.element));
    std::string text =
        fmt::format("  var {}_own = bitcast<{}>(params.neutral{});\n", name, type, s);
    for (std::uint32_t q = 0; q < pass_.steps; ++q) {
      const auto one = [&](int lane) { return change(fmt::format("s{}_{}_{}.item", s, q, lane)); };
      const std::string step = pass_.width == 1 ? one(0)
                                                : combined(fold, combined(fold, one(0), one(1)),
                                                           combined(fold, one(2), one(3)));
      const std::string next = combined(fold, fmt::format("{}_own", name), step);
      text += pass_.exact ? fmt::format("  {}_own = {};\n", name, next)
                          : fmt::format("  {0}_own = select({0}_own, {1}, i{2});\n", name, next, q);
    }
    add_team_fold(fold, type);
    return text +
           fmt::format("  let {0} = team_fold{1}({0}_own, lane, base);\n", name, team_folds_ - 1);
  }

  /// A function that combines the items of a team's threads, in one order for all of them. Two
  /// functions in a row use two rooms, so that none writes what another thread still reads.
  void add_team_fold(const Fold& fold, const std::string& type) {
    const std::string room = fmt::format("room{}", team_folds_ % 2);
    const bool in_two = pass_.lanes > 16;
    const std::uint32_t first = in_two ? pass_.lanes / 8 : pass_.lanes;
    const auto item = [&](const std::string& index) {
      return fmt::format("bitcast<{}>({}[{}])", type, room, index);
    };
    std::string text = fmt::format(
        "fn team_fold{}(item: {}, lane: u32, base: u32) -> {} {{\n"
        "  {}[base + lane] = bitcast<u32>(item);\n  workgroupBarrier();\n",
        team_folds_++, type, type, room);
    if (in_two) {
      std::string part = item("base + lane");
      for (std::uint32_t i = 1; i < 8; ++i)
        part = combined(fold, part, item(fmt::format("base + lane + {}u", i * first)));
      text += fmt::format(
          "  if (lane < {}u) {{ {}[base + lane] = bitcast<u32>({}); }}\n  workgroupBarrier();\n",
          first, room, part);
    }
    text += fmt::format("  var all = {};\n", item("base"));
    for (std::uint32_t i = 1; i < first; ++i)
      text +=
          fmt::format("  all = {};\n", combined(fold, "all", item(fmt::format("base + {}u", i))));
    functions_ += text + "  return all;\n}\n";
  }

  [[nodiscard]] std::string rooms() const {
    std::string text;
    for (std::uint32_t room = 0; room < std::min(team_folds_, 2U); ++room)
      text += fmt::format("var<workgroup> room{}: array<u32, {}>;\n", room, pass_.workgroup());
    return text;
  }

  [[nodiscard]] std::string stores() const {
    const std::size_t s = call_.folds.size();
    std::string one;
    std::string each;
    std::size_t operand = inputs_.size();
    for (std::size_t r = 0; r < call_.out.size(); ++r) {
      if (!call_.is_full(r)) {
        one += fmt::format("    y{}[output] = {};\n", r, result_text(r));
        continue;
      }
      const std::string_view type = wgsl_storage_type(call_.out[r].dtype);
      for (std::uint32_t q = 0; q < pass_.steps; ++q) {
        const std::string store = fmt::format("y{}[{}] = {};", r, place_of(operand, q),
                                              lanes(s, q, fmt::format("y{}", r), type));
        each += pass_.exact ? fmt::format("    {}\n", store)
                            : fmt::format("    if (i{}) {{ {} }}\n", q, store);
      }
      ++operand;
    }
    std::string text;
    if (!each.empty()) text += fmt::format("  if (works) {{\n{}  }}\n", each);
    if (!one.empty()) text += fmt::format("  if (works && lane == 0u) {{\n{}  }}\n", one);
    return text;
  }

  /// The value of a fold, rounded as if it had been stored.
  std::string fold(std::size_t s) {
    const Fold& fold = call_.folds[s];
    const std::string name = fmt::format("fold{}", s);
    std::string text;
    std::string value = name;
    if (fold.combine == Combine::norm) {
      // As in a reduction: squares out of the range of f32 are summed again, scaled by a power of
      // two. Here all are summed twice, because a team may not part at a barrier.
      text = folded(s, name, [](const std::string& x) { return fmt::format("({0} * {0})", x); });
      text += fmt::format(
          "  let in_range{0} = bitcast<u32>(fold{0}) < 0x7f800000u && fold{0} > 0x1p-60f;\n"
          "  let large{0} = fold{0} > 1.0f;\n"
          "  let factor{0} = select(select(0x1p80f, 0x1p-80f, large{0}), 1.0f, in_range{0});\n",
          s);
      const std::string again = fmt::format("again{}", s);
      text += folded(s, again, [&](const std::string& x) {
        return fmt::format("({0} * factor{1} * ({0} * factor{1}))", x, s);
      });
      value = fmt::format(
          "select(sqrt({0} * params.scale{1} * params.scale{1}) * select(0x1p-80f, 0x1p80f, "
          "large{1}), sqrt(fold{1}) * params.scale{1}, in_range{1})",
          again, s);
    } else {
      text = folded(s, name, [](const std::string& x) { return x; });
      if (is_float(fold.element)) value += fmt::format(" * params.scale{}", s);
    }
    value = wgsl_load(fold.value, wgsl_store(fold.element, fold.value, value));
    value = wgsl_rounded(fold.value, value, helpers_);
    return text + fmt::format("  let v{} = {};\n", inputs_.size() + s, value);
  }

  const RowPass& pass_;
  const RowsCall& call_;
  std::span<const DType> inputs_;
  const BodyTypes& types_;
  WgslBody printed_;
  KernelId id_;
  std::set<std::string> helpers_;
  std::string functions_;
  std::uint32_t team_folds_ = 0;
};

}  // namespace

KernelId rows_kernel(const RowPass& pass, std::span<const DType> inputs, const BodyTypes& types,
                     const Limits& limits) {
  return RowsText(pass, inputs, types).run(limits);
}

}  // namespace kiln::dispatch::wgsl
