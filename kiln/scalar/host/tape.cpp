#include "kiln/scalar/host/tape.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

#include "kiln/scalar/opcode_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

std::uint32_t constant_word(double value, Lane lane) {
  switch (lane) {
    case Lane::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Lane::i32:
      return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
    case Lane::u32:
      return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
    case Lane::boolean:
      return value != 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace

/// Walks a body as the printers of text do. At first each step writes a temp of its own. Afterwards
/// temps are shared, and results are written to their places.
class Tape::Builder {
 public:
  Builder(Tape& tape, const Body& body, const BodyTypes& types, std::span<const DType> inputs)
      : tape_(tape), body_(body), types_(types), inputs_(inputs) {}

  void run(std::span<const TapeResult> results) && {
    const auto& nodes = body_.graph->nodes();
    values_.resize(nodes.size());
    tape_.params_ = static_cast<std::size_t>(body_.params);
    tape_.words_ = tape_.params_;  // first; then constants and what follows from them
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (types_.nodes[i] && !is_array(nodes[i])) values_[i] = value(nodes[i], *types_.nodes[i]);
    }
    std::vector<Ref> roots;
    for (std::size_t r = 0; r < results.size(); ++r) {
      const DType from = types_.roots[r];
      roots.push_back(as_result(operand(body_.roots[r], from), from, results[r]));
    }
    place_results(roots, results);
    share_temps();
  }

 private:
  static Ref at(Place place, std::size_t index) {
    return {place, static_cast<std::int32_t>(index)};
  }

  Ref constant(double number, Lane lane) {
    const std::uint32_t word = constant_word(number, lane);
    const auto known = std::ranges::find(constants_, word, &std::pair<std::uint32_t, Ref>::first);
    if (known != constants_.end()) return known->second;
    const Ref ref = new_word();
    constants_.emplace_back(word, ref);
    tape_.constants_.resize(tape_.words_ - tape_.params_);
    tape_.constants_.back() = word;
    return ref;
  }

  /// Whether it stands for an input that is read at positions, or for an index that is not read.
  [[nodiscard]] bool is_array(const ExprGraph::Node& node) const {
    if (node.op == Opcode::index) return true;
    return node.op == Opcode::input && body_.indexed[static_cast<std::size_t>(node.args[0])];
  }

  /// The input that has those coordinates.
  Ref place(int axis) {
    const auto known = std::ranges::find(tape_.places_, axis);
    const auto number = static_cast<std::size_t>(known - tape_.places_.begin());
    if (known == tape_.places_.end()) tape_.places_.push_back(axis);
    return at(Place::input, inputs_.size() + number);
  }

  Ref load(const ExprGraph::Node& node) {
    const auto slot = static_cast<std::size_t>(body_.graph->node(node.args[0]).args[0]);
    const std::array<Ref, 3> from{at(Place::input, slot), operand(node.args[1], DType::u32)};
    const bool half = inputs_[slot] == DType::f16;
    return step(half ? tile_kernels().gather_f16 : tile_kernels().gather, from);
  }

  Ref new_word() { return at(Place::word, tape_.words_++); }

  /// The value of the node. If only literals and params decide, it has the dtype of its user.
  Ref operand(std::int32_t id, DType wanted) {
    const auto i = static_cast<std::size_t>(id);
    if (types_.nodes[i]) return values_[i];
    const ExprGraph::Node& node = body_.graph->node(id);
    if (node.op == Opcode::constant) return constant(node.value, lane_of(wanted));
    return value(node, wanted);
  }

  Ref value(const ExprGraph::Node& node, DType dtype) {
    if (node.op == Opcode::input) return input(static_cast<std::size_t>(node.args[0]));
    if (node.op == Opcode::param) return at(Place::word, static_cast<std::size_t>(node.args[0]));
    if (node.op == Opcode::constant) return constant(node.value, lane_of(dtype));
    if (node.op == Opcode::coordinate) return place(node.args[0]);
    if (node.op == Opcode::position) return place(-1);
    if (node.op == Opcode::load) return load(node);
    const DType otherwise = node.op == Opcode::cast || dtype == DType::boolean ? DType::f32 : dtype;
    const DType meet = operand_dtype(node, types_, otherwise);
    if (node.op == Opcode::cast) return cast(operand(node.args[0], meet), meet, node.dtype);
    if (node.op == Opcode::cast_back) return operand(node.args[0], meet);
    std::array<Ref, 3> from;
    const auto args = operands(node);
    for (std::size_t i = 0; i < args.size(); ++i) {
      const bool condition = node.op == Opcode::select && i == 0;
      from[i] = operand(args[i], condition ? DType::boolean : meet);
    }
    return step(tile_kernels().of(node.op, lane_of(meet)), from);
  }

  Ref input(std::size_t slot) {
    const Ref stored = at(Place::input, slot);
    return inputs_[slot] == DType::f16 ? step(tile_kernels().load_f16, {stored}) : stored;
  }

  Ref cast(Ref from, DType dtype, DType to) {
    const auto index = [](DType d) { return static_cast<std::size_t>(lane_of(d)); };
    const TileKernel kernel = tile_kernels().cast[index(dtype)][index(to)];
    const Ref moved = kernel == nullptr ? from : step(kernel, {from});
    return to == DType::f16 ? step(tile_kernels().round_f16, {moved}) : moved;
  }

  /// The value as it is stored.
  Ref as_result(Ref from, DType dtype, const TapeResult& result) {
    if (result.dtype != DType::f16) {
      const bool same = dtype == result.dtype || lane_of(dtype) == lane_of(result.dtype);
      return same ? from : cast(from, dtype, result.dtype);
    }
    const Ref wide = is_float(dtype) ? from : cast(from, dtype, DType::f32);
    return step(result.stored ? tile_kernels().store_f16 : tile_kernels().round_f16, {wide});
  }

  /// Adds a step, unless there is one that computes the same. A step on words alone gives a word.
  Ref step(TileKernel kernel, std::array<Ref, 3> from) {
    if (kernel == nullptr) throw Error("tape: the opcode does not take these operands");
    const auto is = [&](const Step& s) { return s.kernel == kernel && s.from == from; };
    for (const auto* list : {&tape_.word_steps_, &tape_.tile_steps_}) {
      if (const auto known = std::ranges::find_if(*list, is); known != list->end())
        return known->to;
    }
    const bool uniform =
        kernel != tile_kernels().store_f16 && std::ranges::all_of(from, [](const Ref& ref) {
          return ref.place == Place::none || ref.place == Place::word;
        });
    Step made{kernel, from, {}};
    made.to = uniform ? new_word() : at(Place::temp, tape_.temps_++);
    (uniform ? tape_.word_steps_ : tape_.tile_steps_).push_back(made);
    return made.to;
  }

  [[nodiscard]] std::size_t last_step_that_reads_inputs() const {
    for (std::size_t s = tape_.tile_steps_.size(); s-- > 0;) {
      for (const Ref& ref : tape_.tile_steps_[s].from) {
        if (ref.place == Place::input) return s;
      }
    }
    return 0;
  }

  /// Lets the step that computes a result write it to its place, or copies it. A result may share
  /// memory with an input, so nothing is written there before every input was read, unless it is
  /// apart.
  void place_results(std::span<const Ref> roots, std::span<const TapeResult> results) {
    std::vector<Step>& steps = tape_.tile_steps_;
    const std::size_t inputs_read = last_step_that_reads_inputs();
    std::vector<std::size_t> copied;
    for (std::size_t r = 0; r < roots.size(); ++r) {
      const auto maker = std::ranges::find(steps, roots[r], &Step::to);
      const bool late =
          results[r].apart || static_cast<std::size_t>(maker - steps.begin()) >= inputs_read;
      const bool direct = roots[r].place == Place::temp && maker != steps.end() && late;
      if (!direct) {
        copied.push_back(r);
        continue;
      }
      rename(roots[r], at(Place::result, r));
    }
    // A root that two results share was renamed for the first of them.
    std::vector<Step> copies;
    for (const std::size_t r : copied) {
      const Ref from = renamed(roots[r]);
      const bool half = maker_of(from) == tile_kernels().store_f16;
      copies.push_back(
          {half ? tile_kernels().copy_f16 : tile_kernels().copy, {from}, at(Place::result, r)});
    }
    append_copies(copies);
  }

  [[nodiscard]] TileKernel maker_of(Ref ref) const {
    const auto maker = std::ranges::find(tape_.tile_steps_, ref, &Step::to);
    return maker == tape_.tile_steps_.end() ? nullptr : maker->kernel;
  }

  void rename(Ref from, Ref to) {
    renames_.emplace_back(from, to);
    for (Step& s : tape_.tile_steps_) {
      for (Ref& ref : s.from) {
        if (ref == from) ref = to;
      }
      if (s.to == from) s.to = to;
    }
  }
  [[nodiscard]] Ref renamed(Ref ref) const {
    const auto known = std::ranges::find(renames_, ref, &std::pair<Ref, Ref>::first);
    return known == renames_.end() ? ref : known->second;
  }

  /// Copies of inputs go through temps if another copy comes before them.
  void append_copies(std::vector<Step>& copies) {
    std::vector<Step>& steps = tape_.tile_steps_;
    const auto of_input = [](const Step& s) { return s.from[0].place == Place::input; };
    if (std::ranges::any_of(copies, of_input) && copies.size() + steps.size() > 1) {
      for (Step& copy : copies) {
        if (!of_input(copy)) continue;
        const Ref temp = at(Place::temp, tape_.temps_++);
        // Before the first step that may write over it.
        steps.insert(steps.begin(), {copy.kernel, {copy.from[0]}, temp});
        copy.from[0] = temp;
      }
    }
    steps.insert(steps.end(), copies.begin(), copies.end());
  }

  /// Lets later temps use the memory of temps that are not read any more.
  void share_temps() {
    std::vector<std::size_t> last(tape_.temps_, 0);
    std::vector<Step>& steps = tape_.tile_steps_;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (const Ref& ref : steps[s].from) {
        if (ref.place == Place::temp) last[static_cast<std::size_t>(ref.index)] = s;
      }
    }
    std::vector<std::int32_t> slot(tape_.temps_, -1);
    std::vector<std::int32_t> free;
    std::int32_t used = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (Ref& ref : steps[s].from) {
        if (ref.place != Place::temp) continue;
        const auto temp = static_cast<std::size_t>(ref.index);
        ref.index = slot[temp];
        if (last[temp] == s && std::ranges::find(free, slot[temp]) == free.end())
          free.push_back(slot[temp]);
      }
      if (steps[s].to.place != Place::temp) continue;
      if (free.empty()) free.push_back(used++);
      std::int32_t& mine = slot[static_cast<std::size_t>(steps[s].to.index)];
      mine = free.back();
      free.pop_back();
      steps[s].to.index = mine;
    }
    tape_.temps_ = static_cast<std::size_t>(used);
  }

  Tape& tape_;
  const Body& body_;
  const BodyTypes& types_;
  std::span<const DType> inputs_;
  std::vector<Ref> values_;
  std::vector<std::pair<std::uint32_t, Ref>> constants_;
  std::vector<std::pair<Ref, Ref>> renames_;
};

Tape::Tape(const Body& body, const BodyTypes& types, std::span<const DType> inputs,
           std::span<const TapeResult> results) {
  Builder(*this, body, types, inputs).run(results);
}

Tape::State::State(const Tape& tape, std::span<const std::uint32_t> params)
    : words_(tape.words_), tiles_(tape.temps_ * tile), uniform_(tape.temps_) {
  std::ranges::copy(params.first(tape.params_), words_.begin());
  std::ranges::copy(tape.constants_, words_.begin() + static_cast<std::ptrdiff_t>(tape.params_));
  for (const Step& step : tape.word_steps_) {
    std::array<TileArg, 3> from;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (step.from[i].place == Place::word)
        from[i] = {&words_[static_cast<std::size_t>(step.from[i].index)], true};
    }
    step.kernel(from.data(), &words_[static_cast<std::size_t>(step.to.index)], 1);
  }
}

void Tape::run(State& state, std::span<const TileArg> inputs, std::span<void* const> results,
               std::size_t n) const {
  const auto memory = [&](const Ref& ref) -> void* {
    const auto i = static_cast<std::size_t>(ref.index);
    return ref.place == Place::temp ? &state.tiles_[i * tile] : results[i];
  };
  for (const Step& step : tile_steps_) {
    std::array<TileArg, 3> from;
    bool uniform = step.to.place == Place::temp && step.kernel != tile_kernels().store_f16;
    for (std::size_t i = 0; i < from.size() && step.from[i].place != Place::none; ++i) {
      const Ref& ref = step.from[i];
      const auto index = static_cast<std::size_t>(ref.index);
      if (ref.place == Place::input) {
        from[i] = inputs[index];
      } else if (ref.place == Place::word) {
        from[i] = {&state.words_[index], true};
      } else {
        from[i] = {memory(ref), ref.place == Place::temp && state.uniform_[index] != 0};
      }
      uniform = uniform && from[i].uniform;
    }
    if (step.to.place == Place::temp)
      state.uniform_[static_cast<std::size_t>(step.to.index)] = uniform ? 1 : 0;
    step.kernel(from.data(), memory(step.to), uniform ? 1 : n);
  }
}

}  // namespace kiln
