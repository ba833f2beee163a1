#include "kiln/dispatch/host/row_tapes.hpp"

#include <algorithm>

#include "kiln/scalar/compose.hpp"
#include "kiln/scalar/opcode_table.hpp"

namespace kiln::dispatch::host {
namespace {

using Kind = RowSource::Kind;

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

/// How the value is held between tapes.
DType held(DType dtype) { return dtype == DType::f16 ? DType::f32 : dtype; }

class TapesBuilder {
 public:
  TapesBuilder(const RowsCall& call, std::span<const RawTensor> inputs, const PreparedStages& from)
      : call_(call), inputs_(inputs), from_(from), nodes_(call.body->graph->nodes()) {
    stage_of_.assign(nodes_.size(), from.stages.stages.size());
    for (std::size_t s = from.stages.stages.size(); s-- > 0;) {
      const RowStages::Stage& stage = from.stages.stages[s];
      for (const auto* list : {&stage.row, &stage.element, &stage.loads}) {
        for (const std::int32_t id : *list) stage_of_[at(id)] = s;
      }
    }
  }

  void build(PreparedRows& out) && {
    out.stages.resize(from_.stages.stages.size());
    for (std::size_t s = 0; s < out.stages.size(); ++s) {
      for (const std::int32_t id : from_.stages.stages[s].keeps) {
        if (!is_read_again(id)) kept_.push_back(id);
      }
    }
    for (std::size_t s = 0; s < out.stages.size(); ++s) build_elements(out.stages[s], s);
    // Afterwards it is known what they need of the rows. Later stages need values of earlier ones.
    for (std::size_t s = out.stages.size(); s-- > 0;) build_rows(out.stages[s], s);
    out.kept = kept_.size();
    out.values = values_.size();
  }

 private:
  /// Elements that are read where they lie, or counted, whenever they are needed.
  [[nodiscard]] bool is_read_again(std::int32_t id) const {
    return nodes_[at(id)].op == Opcode::input || nodes_[at(id)].op == Opcode::coordinate;
  }
  [[nodiscard]] bool is_for_each(std::int32_t id) const {
    return from_.stages.per_element[at(id)] != 0;
  }
  [[nodiscard]] bool is_operand(std::int32_t id) const {
    return nodes_[at(id)].op == Opcode::input && at(nodes_[at(id)].args[0]) < inputs_.size();
  }
  /// Whether every tape that needs it computes it: what is no work, and what has no dtype.
  [[nodiscard]] bool is_everywhere(std::int32_t id) const {
    const Opcode op = nodes_[at(id)].op;
    return !from_.types.nodes[at(id)] || op == Opcode::constant || op == Opcode::param;
  }

  static std::size_t number_in(std::vector<std::int32_t>& list, std::int32_t id) {
    const auto known = std::ranges::find(list, id);
    if (known == list.end()) {
      list.push_back(id);
      return list.size() - 1;
    }
    return static_cast<std::size_t>(known - list.begin());
  }

  /// Where the tape that computes stage `s` once a row finds the node; nothing if it computes it.
  std::optional<RowSource> row_source(std::int32_t id, std::size_t s) {
    if (is_everywhere(id)) return std::nullopt;
    if (stage_of_[at(id)] != s) return RowSource{Kind::value, number_in(values_, id)};
    if (nodes_[at(id)].op != Opcode::input) return std::nullopt;
    const std::size_t slot = at(nodes_[at(id)].args[0]);
    return is_operand(id) ? RowSource{Kind::operand, slot}
                          : RowSource{Kind::fold, slot - inputs_.size()};
  }

  /// The same of the tape that computes it for each element.
  std::optional<RowSource> element_source(std::int32_t id, std::size_t s) {
    if (is_everywhere(id)) return std::nullopt;
    if (!is_for_each(id)) return RowSource{Kind::value, number_in(values_, id)};
    if (is_operand(id)) return RowSource{Kind::operand, at(nodes_[at(id)].args[0])};
    if (stage_of_[at(id)] == s || is_read_again(id)) return std::nullopt;
    return RowSource{Kind::kept, number_in(kept_, id)};
  }

  void build_elements(StageTapes& out, std::size_t s) {
    const RowStages::Stage& stage = from_.stages.stages[s];
    std::vector<std::int32_t> roots;
    std::vector<TapeResult> results;
    for (const std::int32_t id : stage.keeps) {
      if (is_read_again(id)) continue;
      out.kept.push_back(number_in(kept_, id));
      roots.push_back(id);
      results.push_back(kept_as(id));
    }
    if (s < call_.folds.size()) {
      const std::int32_t id = stage.roots[0];
      out.folded = folded(id, s);
      if (out.folded->kind == Kind::result) {
        roots.push_back(id);
        results.push_back({call_.folds[s].element, false, true});
      }
    } else {
      for (std::size_t r = 0; r < call_.out.size(); ++r) {
        if (!call_.is_full(r)) continue;
        out.results.push_back(r);
        roots.push_back(stage.roots[r]);
        results.push_back({call_.out[r].dtype, true, true});
      }
    }
    out.elements = tape(roots, results, [&](std::int32_t id) { return element_source(id, s); });
  }

  /// Where the fold's elements lie; the tape computes them if they are nowhere yet.
  RowSource folded(std::int32_t id, std::size_t s) {
    const auto found = std::ranges::find(kept_, id);
    if (found != kept_.end()) return {Kind::kept, static_cast<std::size_t>(found - kept_.begin())};
    const auto source = element_source(id, s);
    const bool as_stored =
        source && source->kind == Kind::operand && inputs_[source->index].dtype != DType::f16;
    return as_stored ? *source : RowSource{};
  }

  void build_rows(StageTapes& out, std::size_t s) {
    std::vector<std::int32_t> roots;
    std::vector<TapeResult> results;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (stage_of_[at(values_[v])] != s) continue;
      out.values.push_back(v);
      roots.push_back(values_[v]);
      results.push_back(kept_as(values_[v]));
    }
    for (std::size_t r = 0; s == call_.folds.size() && r < call_.out.size(); ++r) {
      if (call_.is_full(r)) continue;
      out.row_results.push_back(r);
      roots.push_back(from_.stages.stages[s].roots[r]);
      results.push_back({call_.out[r].dtype, true, true});
    }
    out.rows = tape(roots, results, [&](std::int32_t id) { return row_source(id, s); });
  }

  [[nodiscard]] TapeResult kept_as(std::int32_t id) const {
    return {held(*from_.types.nodes[at(id)]), false, true};
  }

  /// The tape of the nodes `roots`. `source_of` says what it takes instead of computing it.
  template <class F>
  RowTape tape(std::span<const std::int32_t> roots, std::span<const TapeResult> results,
               const F& source_of) {
    RowTape out;
    if (roots.empty()) return out;
    std::vector<char> needed(nodes_.size());
    for (const std::int32_t root : roots) needed[at(root)] = 1;
    std::vector<std::optional<RowSource>> sources(nodes_.size());
    for (std::size_t n = nodes_.size(); n-- > 0;) {
      if (needed[n] == 0) continue;
      sources[n] = source_of(static_cast<std::int32_t>(n));
      if (sources[n]) continue;
      for (const std::int32_t operand : operands(nodes_[n])) needed[at(operand)] = 1;
    }
    Composer composer;
    std::vector<DType> dtypes;  // of the inputs
    std::vector<DType> stored;  // how they are given
    std::vector<std::int32_t> moved(nodes_.size(), -1);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (needed[n] == 0) continue;
      if (sources[n]) {
        moved[n] = composer.input(static_cast<int>(out.in.size()));
        out.in.push_back(*sources[n]);
        dtypes.push_back(*from_.types.nodes[n]);
        const bool is_held = sources[n]->kind == Kind::value || sources[n]->kind == Kind::kept;
        stored.push_back(is_held ? held(dtypes.back()) : dtypes.back());
        continue;
      }
      ExprGraph::Node node = nodes_[n];
      const std::size_t count = operands(node).size();
      for (std::size_t a = 0; a < count; ++a) node.args[a] = moved[at(node.args[a])];
      moved[n] = composer.intern(node);
    }
    std::vector<std::int32_t> ends;
    for (const std::int32_t root : roots) ends.push_back(moved[at(root)]);
    const BodyPtr body = composer.finish(static_cast<int>(out.in.size()), call_.body->params, ends);
    out.types = infer(call_.op, *body, dtypes, DType::f32);
    out.tape.emplace(*body, out.types, stored, results);
    return out;
  }

  const RowsCall& call_;
  std::span<const RawTensor> inputs_;
  const PreparedStages& from_;
  const std::vector<ExprGraph::Node>& nodes_;
  std::vector<std::size_t> stage_of_;  ///< of each node: the first stage that needs it
  std::vector<std::int32_t> kept_;     ///< nodes that are kept of each element
  std::vector<std::int32_t> values_;   ///< nodes that are computed once a row, and used elsewhere
};

}  // namespace

std::shared_ptr<const PreparedRows> prepare_rows(Runtime& runtime, const RowsCall& call,
                                                 std::span<const RawTensor> inputs) {
  const std::shared_ptr<const PreparedStages> from = prepare_stages(runtime, call, inputs);
  std::string key = "r";
  append_bytes(key, from.get());  // which the entry keeps
  for (const Fold& fold : call.folds) append_bytes(key, fold.element);
  append_bytes(key, call.out.size());
  for (std::size_t r = 0; r < call.out.size(); ++r) {
    append_bytes(key, call.out[r].dtype);
    append_bytes(key, call.is_full(r));
  }
  return KernelCache::of(runtime).find_or<PreparedRows>(key, [&] {
    auto out = std::make_shared<PreparedRows>();
    out->from = from;
    TapesBuilder(call, inputs, *from).build(*out);
    return out;
  });
}

}  // namespace kiln::dispatch::host
