#include "kiln/dispatch/wgsl/rows/rows_kernel.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "kiln/dispatch/wgsl/rows/fold_text.hpp"
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
      : pass_(pass), call_(pass.call), inputs_(inputs), types_(types), team_(pass) {
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
    for (std::size_t s = 0; s < pass_.stages().stages.size(); ++s) text += stage(s);
    metadata.add_zero_for(helpers_);
    const std::string params =
        metadata.declare(limits, 0, static_cast<std::uint32_t>(id_.bindings.size()), id_);
    const std::string declarations =
        arrays + params + wgsl_helpers(helpers_) + functions_ + team_.declarations();
    id_.workgroup = {pass_.workgroup(), 1, 1};
    id_.trusted = true;  // every index is below the sizes for which the operands were laid out
    id_.source = enable_f16(declarations + text) + declarations +
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
    return pass_.stages().per_element[at(id)] != 0;
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
        "  let team = local.x {0} {1}u;\n  let lane = local.x {2} {1}u;\n"
        "  let row = (group.y * groups.x + group.x) * {3}u + team;\n"
        "  let works = row < params.rows;\n  let output = min(row, params.rows - 1u);\n",
        pass_.adjacent ? '%' : '/', pass_.adjacent ? pass_.rows : pass_.lanes,
        pass_.adjacent ? '/' : '%', pass_.rows);
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
    return pass_.looped ? text : text + steps();
  }

  /// Where in the row the thread's steps are, and whether they are within it.
  [[nodiscard]] std::string steps() const {
    std::string text;
    for (std::uint32_t q = 0; q < pass_.steps; ++q) {
      const std::string place = fmt::format("({}{}u + lane) * {}u", pass_.looped ? "at + " : "",
                                            q * pass_.lanes, pass_.width);
      text += pass_.exact ? fmt::format("  let r{} = {};\n", q, place)
                          : fmt::format(
                                "  let in{0} = {1} < params.count;\n"
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

  /// What is computed once a row before the stage.
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
    return text;
  }

  /// What the stage loads for step q.
  [[nodiscard]] std::string loads(const Stage& stage, std::uint32_t q) const {
    std::string text;
    for (const std::int32_t id : stage.loads) {
      const auto slot = at(node(id).args[0]);
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

  /// What the stage's function gives for the elements of step q.
  [[nodiscard]] std::string elements(std::size_t s, const Stage& stage,
                                     std::span<const std::int32_t> takes, std::uint32_t q) const {
    std::string text;
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
    return text;
  }

  std::string stage(std::size_t s) {
    const Stage& stage = pass_.stages().stages[s];
    std::string text = before(stage);
    const std::vector<Member> gives = members(s, stage);
    const std::vector<std::int32_t> takes = arguments(stage);
    if (!gives.empty()) add_function(s, stage, gives, takes);
    if (is_last(s)) return text + results(s, stage, takes);
    FoldText fold(pass_, s, team_);
    std::string items;
    // All loads first, so that they are under way together.
    for (std::uint32_t q = 0; q < pass_.steps; ++q) items += loads(stage, q);
    for (std::uint32_t q = 0; q < pass_.steps; ++q) items += elements(s, stage, takes, q);
    items += fold.add_items();
    // What later stages take is declared outside of a loop; in a loop they take nothing.
    text += fold.start() + (pass_.looped ? in_rounds(items) : items);
    return text + fold.finish(inputs_.size() + s, helpers_);
  }

  /// The text for all rounds of a row that is not kept.
  [[nodiscard]] std::string in_rounds(const std::string& text) const {
    return fmt::format("  for (var at = 0u; at * {}u < params.count; at += {}u) {{\n{}{}  }}\n",
                       pass_.width, pass_.lanes * pass_.steps, steps(), text);
  }

  /// A member of all lanes of a step, as one vector.
  [[nodiscard]] std::string lanes(std::size_t s, std::uint32_t q, std::string_view member,
                                  std::string_view type) const {
    const auto one = [&](int lane) { return fmt::format("s{}_{}_{}.{}", s, q, lane, member); };
    if (pass_.width == 1) return one(0);
    return fmt::format("vec4<{}>({}, {}, {}, {})", type, one(0), one(1), one(2), one(3));
  }

  /// The last stage. A few steps are stored before the next ones are computed, so that what a
  /// thread holds shrinks; their loads are under way together.
  [[nodiscard]] std::string results(std::size_t s, const Stage& stage,
                                    std::span<const std::int32_t> takes) const {
    std::string one;
    for (std::size_t r = 0; r < call_.out.size(); ++r) {
      if (!call_.is_full(r)) one += fmt::format("    y{}[output] = {};\n", r, result_text(r));
    }
    std::string each;
    const std::uint32_t steps = pass_.layouts.size() > inputs_.size() ? pass_.steps : 0;
    for (std::uint32_t first = 0; first < steps; first += 4) {
      const std::uint32_t end = std::min(first + 4, steps);
      for (std::uint32_t q = first; q < end; ++q) each += loads(stage, q);
      for (std::uint32_t q = first; q < end; ++q) {
        const std::string store = stores(s, q);
        each += elements(s, stage, takes, q);
        each += pass_.exact ? store : fmt::format("  if (in{}) {{\n{}  }}\n", q, store);
      }
    }
    std::string text;
    if (pass_.looped && !each.empty()) each = in_rounds(each);
    if (!each.empty()) text += fmt::format("  if (works) {{\n{}  }}\n", each);
    if (!one.empty()) text += fmt::format("  if (works && lane == 0u) {{\n{}  }}\n", one);
    return text;
  }

  /// Stores step q of the results that have it.
  [[nodiscard]] std::string stores(std::size_t s, std::uint32_t q) const {
    std::string text;
    std::size_t operand = inputs_.size();
    for (std::size_t r = 0; r < call_.out.size(); ++r) {
      if (!call_.is_full(r)) continue;
      text +=
          fmt::format("  y{}[{}] = {};\n", r, place_of(operand++, q),
                      lanes(s, q, fmt::format("y{}", r), wgsl_storage_type(call_.out[r].dtype)));
    }
    return text;
  }

  const RowPass& pass_;
  const RowsCall& call_;
  std::span<const DType> inputs_;
  const BodyTypes& types_;
  WgslBody printed_;
  KernelId id_;
  std::set<std::string> helpers_;
  std::string functions_;
  TeamFolds team_;
};

}  // namespace

KernelId rows_kernel(const RowPass& pass, std::span<const DType> inputs, const BodyTypes& types,
                     const Limits& limits) {
  return RowsText(pass, inputs, types).run(limits);
}

}  // namespace kiln::dispatch::wgsl
