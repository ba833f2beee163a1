#include <algorithm>
#include <optional>

#include "kiln/dispatch/host/backend.hpp"
#include "kiln/dispatch/host/combine.hpp"
#include "kiln/dispatch/host/places.hpp"
#include "kiln/dispatch/host/row_tapes.hpp"
#include "kiln/dispatch/host/row_walk.hpp"
#include "kiln/dispatch/host/tiles.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/cpu/parallel.hpp"

namespace kiln::dispatch::host {
namespace {

class HostRows {
 public:
  HostRows(cpu::CpuRuntime& runtime, const RowsCall& call, std::span<const RawTensor> inputs,
           std::span<const RawTensor> results)
      : call_(call),
        prepared_(prepare_rows(runtime, call, inputs)),
        walk_(*row_walk(call, inputs)) {
    std::vector<Layout> narrow;  // of the operands that have one element a row
    std::vector<Layout> full;    // of the others, and of the results with an element for each
    for (std::size_t i = 0; i < inputs.size(); ++i)
      (is_wide(i) ? full : narrow).push_back(inputs[i].layout.broadcast_to(call.shape));
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (call.is_full(r)) full.push_back(Layout::dense(call.shape));
    }
    push_axes(narrow, full);
    std::size_t next_narrow = 0;
    std::size_t next_full = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Layout& layout = is_wide(i) ? full[next_full] : narrow[next_narrow];
      std::byte* base = runtime.data_of(call.op, inputs[i].buffer) +
                        layout.offset * static_cast<std::int64_t>(size_of(inputs[i].dtype));
      inputs_.emplace_back(is_wide(i) ? all_ : kept_, is_wide(i) ? next_full++ : next_narrow++,
                           inputs[i].dtype, base);
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      results_.push_back(runtime.data_of(call.op, results[r].buffer));
      if (call.is_full(r)) writers_.emplace_back(all_, next_full++, results[r].dtype, results_[r]);
    }
    for (const Fold& fold : call.folds) combiners_.emplace_back(fold.combine, fold.element);
    for (const StageTapes& stage : prepared_->stages) {
      row_params_.push_back(words_of(stage.rows));
      element_params_.push_back(words_of(stage.elements));
    }
  }
  HostRows(const HostRows&) = delete;  // its readers point to its axes
  HostRows& operator=(const HostRows&) = delete;

  void run() const {
    cpu::parallel_for(ceil_div(walk_.rows, walk_.group), grain(),
                      [&](std::int64_t begin, std::int64_t end) {
                        State state(*this);
                        for (std::int64_t g = begin; g < end; ++g) {
                          const std::int64_t first = g * walk_.group;
                          run_group(state, {first, std::min(walk_.group, walk_.rows - first)});
                        }
                      });
  }

 private:
  /// Rows [row, row + rows), which pass a stage together.
  struct Group {
    std::int64_t row = 0;
    std::int64_t rows = 1;
  };
  /// A tile: elements [first, first + count) of rows [row, row + rows).
  struct Part {
    std::int64_t row = 0;
    std::int64_t rows = 1;
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int64_t in_group = 0;  ///< the number of its first row in the group
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rows * count); }
  };

  /// What one thread needs.
  struct State {
    explicit State(const HostRows& of);
    std::vector<std::optional<Tape::State>> row_tapes;
    std::vector<std::optional<Tape::State>> element_tapes;
    std::vector<std::uint32_t> buffers;  ///< a tile for each input, place and result of a tape
    std::vector<std::uint32_t> kept;     ///< a group of rows each
    std::vector<std::uint32_t> values;   ///< a tile each: one for each row
    std::vector<std::uint32_t> spread;   ///< a tile each: of the values, one for each element
    std::vector<std::uint32_t> folds;    ///< a tile each: values as they are stored
    std::vector<Partial> partials;
    std::vector<TileArg> args;
    std::vector<void*> results;
  };

  [[nodiscard]] bool is_wide(std::size_t operand) const {
    return prepared_->from->wide[operand] != 0;
  }
  [[nodiscard]] std::vector<std::uint32_t> words_of(const RowTape& tape) const {
    return tape.tape ? param_words(call_.op, call_.params, tape.types)
                     : std::vector<std::uint32_t>();
  }

  void push_axes(std::span<const Layout> narrow, std::span<const Layout> full) {
    kept_ = axes_of(call_, narrow, false);
    all_ = CoalescedAxes(full.size());
    for (const bool away : {false, true}) {
      for (int axis = 0; axis < call_.shape.rank(); ++axis) {
        if (call_.axes[static_cast<std::size_t>(axis)] == away) all_.push(call_.shape, axis, full);
      }
    }
    for (int axis = 0; axis < call_.shape.rank(); ++axis) {
      const bool away = call_.axes[static_cast<std::size_t>(axis)];
      Shape& part = away ? reduced_shape_ : kept_shape_;
      axis_number_.push_back(part.rank());
      part.push_back(call_.shape[axis]);
    }
  }

  /// The fewest groups for which a thread is worthwhile.
  [[nodiscard]] std::int64_t grain() const {
    std::size_t length = call_.folds.size();
    for (const StageTapes& stage : prepared_->stages)
      length += stage.elements.tape ? stage.elements.tape->length() : 0;
    const auto tiles = static_cast<std::size_t>(ceil_div(walk_.size(), tile_size));
    return grain_of(length * tiles);
  }

  void run_group(State& state, const Group& group) const {
    for (std::size_t s = 0; s < prepared_->stages.size(); ++s) {
      run_rows(state, s, group);
      if (prepared_->stages[s].folded) {
        fold(state, s, group);
      } else if (prepared_->stages[s].elements.tape) {
        each_part(group, [&](const Part& part) { run_elements(state, s, part); });
      }
    }
  }

  /// Calls f(part) for every tile of the group: the tiles of a row in their order.
  template <class F>
  void each_part(const Group& group, const F& f) const {
    for (std::int64_t r = 0; r < group.rows; r += walk_.tile_rows) {
      const std::int64_t rows = std::min(walk_.tile_rows, group.rows - r);
      for (std::int64_t at = 0; at < walk_.count; at += tile_size)
        f(Part{group.row + r, rows, at, std::min(tile_size, walk_.count - at), r});
    }
  }

  static std::uint32_t* tile_of(std::vector<std::uint32_t>& tiles, std::size_t number) {
    return &tiles[number * Tape::tile];
  }

  /// What is computed once a row.
  void run_rows(State& state, std::size_t s, const Group& group) const {
    const StageTapes& stage = prepared_->stages[s];
    if (!stage.rows.tape) return;
    const auto n = static_cast<std::size_t>(group.rows);
    std::size_t arg = 0;
    for (const RowSource& in : stage.rows.in) {
      TileArg& to = state.args[arg];
      if (in.kind == RowSource::Kind::operand) {
        to = inputs_[in.index].read(0, group.row, n, tile_of(state.buffers, arg));
      } else {
        auto& from = in.kind == RowSource::Kind::fold ? state.folds : state.values;
        to = {tile_of(from, in.index), false};
      }
      ++arg;
    }
    for (const int axis : stage.rows.tape->places()) {
      const int number = axis_number_[static_cast<std::size_t>(axis)];
      state.args[arg] = place_tile(kept_shape_, number, group.row, n, tile_of(state.buffers, arg));
      ++arg;
    }
    std::size_t result = 0;
    for (const std::size_t value : stage.values)
      state.results[result++] = tile_of(state.values, value);
    for (const std::size_t r : stage.row_results)
      state.results[result++] =
          results_[r] + static_cast<std::size_t>(group.row) * size_of(call_.out[r].dtype);
    stage.rows.tape->run(*state.row_tapes[s], std::span(state.args).first(arg),
                         std::span(state.results).first(result), n);
    if (walk_.tile_rows == 1) return;
    for (const std::size_t value : stage.values) spread(state, value, n);
  }

  /// Repeats a value of each row for the row's elements.
  void spread(State& state, std::size_t value, std::size_t rows) const {
    const std::uint32_t* from = tile_of(state.values, value);
    std::uint32_t* to = &state.spread[value * spread_size()];
    const auto count = static_cast<std::size_t>(walk_.count);
    for (std::size_t r = 0; r < rows; ++r) std::fill_n(to + r * count, count, from[r]);
  }
  [[nodiscard]] std::size_t spread_size() const {
    return walk_.tile_rows == 1 ? 0 : static_cast<std::size_t>(walk_.size());
  }

  /// Where what is kept of the part's elements lies.
  [[nodiscard]] std::uint32_t* kept_at(State& state, std::size_t kept, const Part& part) const {
    const std::int64_t at = part.in_group * walk_.count + part.first * part.rows;
    return &state
                .kept[kept * static_cast<std::size_t>(walk_.size()) + static_cast<std::size_t>(at)];
  }

  TileArg read(State& state, const RowSource& in, const Part& part, void* buffer) const {
    if (in.kind == RowSource::Kind::kept) return {kept_at(state, in.index, part), false};
    if (in.kind == RowSource::Kind::operand) {
      const std::int64_t first = part.row * walk_.count + part.first;
      return inputs_[in.index].read(0, first, part.size(), buffer);
    }
    const auto row = static_cast<std::size_t>(part.in_group);
    if (walk_.tile_rows == 1) return {tile_of(state.values, in.index) + row, true};
    const std::size_t at = row * static_cast<std::size_t>(walk_.count);
    return {&state.spread[in.index * spread_size() + at], false};
  }

  /// What is computed for each element. Afterwards state.results says where it lies.
  void run_elements(State& state, std::size_t s, const Part& part) const {
    const StageTapes& stage = prepared_->stages[s];
    if (!stage.elements.tape) return;
    std::size_t arg = 0;
    for (const RowSource& in : stage.elements.in) {
      state.args[arg] = read(state, in, part, tile_of(state.buffers, arg));
      ++arg;
    }
    for (const int axis : stage.elements.tape->places()) {
      const int number = axis_number_[static_cast<std::size_t>(axis)];
      state.args[arg] =
          place_tile(reduced_shape_, number, part.first, part.size(), tile_of(state.buffers, arg));
      ++arg;
    }
    std::size_t result = 0;
    for (const std::size_t kept : stage.kept) state.results[result++] = kept_at(state, kept, part);
    const std::int64_t first = part.row * walk_.count + part.first;
    const std::size_t stored = result;
    for (std::size_t r = 0; r < stage.results.size(); ++r) {
      void* direct = writers_[r].direct(first);
      state.results[result++] = direct == nullptr ? tile_of(state.buffers, arg + r) : direct;
    }
    if (stage.folded) state.results[result++] = tile_of(state.buffers, arg);
    stage.elements.tape->run(*state.element_tapes[s], std::span(state.args).first(arg),
                             std::span(state.results).first(result), part.size());
    for (std::size_t r = 0; r < stage.results.size(); ++r) {
      const void* from = state.results[stored + r];
      if (writers_[r].direct(first) == nullptr) writers_[r].write(first, part.size(), from);
    }
  }

  /// Computes and folds elements, and stores the value of each row.
  void fold(State& state, std::size_t s, const Group& group) const {
    const Combiner& combiner = combiners_[s];
    const auto partials = std::span(state.partials).first(static_cast<std::size_t>(group.rows));
    std::ranges::fill(partials, combiner.neutral());
    each_part(group, [&](const Part& part) {
      run_elements(state, s, part);
      const std::uint32_t* elements = folded(state, prepared_->stages[s], part);
      for (std::int64_t r = 0; r < part.rows; ++r)
        combiner.add(partials[static_cast<std::size_t>(part.in_group + r)],
                     elements + r * part.count, static_cast<std::size_t>(part.count), part.first);
    });
    const Fold& fold = call_.folds[s];
    void* to = tile_of(state.folds, s);
    for (const Partial& partial : partials) {
      combiner.store(partial, fold.scale, fold.value, to);
      to = static_cast<std::byte*>(to) + size_of(fold.value);
    }
  }

  /// The elements that the stage folds, after run_elements().
  const std::uint32_t* folded(State& state, const StageTapes& stage, const Part& part) const {
    const RowSource& from = *stage.folded;
    const bool made = from.kind == RowSource::Kind::result;
    const TileArg arg = made ? TileArg{state.results[stage.kept.size()], false}
                             : read(state, from, part, state.buffers.data());
    if (!arg.uniform) return static_cast<const std::uint32_t*>(arg.data);
    tile_kernels().copy(&arg, state.buffers.data(), part.size());
    return state.buffers.data();
  }

  const RowsCall& call_;
  std::shared_ptr<const PreparedRows> prepared_;
  RowWalk walk_;
  CoalescedAxes kept_;
  CoalescedAxes all_;  ///< the rows' axes, then those of a row
  Shape kept_shape_;
  Shape reduced_shape_;
  std::vector<int> axis_number_;  ///< of each axis: its number in the shape that has it
  std::vector<TileReader> inputs_;
  std::vector<TileReader> writers_;  ///< of the results with an element for each
  std::vector<std::byte*> results_;
  std::vector<Combiner> combiners_;
  std::vector<std::vector<std::uint32_t>> row_params_;
  std::vector<std::vector<std::uint32_t>> element_params_;
};

HostRows::State::State(const HostRows& of)
    : kept(of.prepared_->kept * static_cast<std::size_t>(of.walk_.size())),
      values(of.prepared_->values * Tape::tile),
      spread(of.prepared_->values * of.spread_size()),
      folds(of.call_.folds.size() * Tape::tile),
      partials(static_cast<std::size_t>(of.walk_.group)) {
  std::size_t most_args = 1;
  std::size_t most_results = 1;
  const auto prepare = [&](const RowTape& tape, std::span<const std::uint32_t> params,
                           std::size_t count) {
    if (!tape.tape) return std::optional<Tape::State>();
    most_args = std::max(most_args, tape.in.size() + tape.tape->places().size());
    most_results = std::max(most_results, count + 1);
    return std::optional<Tape::State>(std::in_place, *tape.tape, params);
  };
  for (std::size_t s = 0; s < of.prepared_->stages.size(); ++s) {
    const StageTapes& stage = of.prepared_->stages[s];
    row_tapes.push_back(
        prepare(stage.rows, of.row_params_[s], stage.values.size() + stage.row_results.size()));
    element_tapes.push_back(
        prepare(stage.elements, of.element_params_[s], stage.kept.size() + stage.results.size()));
  }
  args.resize(most_args);
  results.resize(most_results);
  buffers.resize((most_args + most_results) * Tape::tile);
}

}  // namespace

bool takes_rows(Runtime& runtime, const RowsCall& call, std::span<const RawTensor> inputs) {
  constexpr std::int64_t most_kept = 1 << 20;  // elements of a thread: more leave the caches
  const auto walk = row_walk(call, inputs);
  if (!walk || call.body->position) return false;
  const auto kept = static_cast<std::int64_t>(prepare_rows(runtime, call, inputs)->kept);
  return walk->size() * kept <= most_kept;
}

void run_rows(const std::shared_ptr<Runtime>& runtime, const RowsCall& call,
              std::span<const RawTensor> inputs, std::span<const RawTensor> results) {
  cpu::CpuRuntime& host = *cpu::host(*runtime);
  host.run(call.op, [&] { HostRows(host, call, inputs, results).run(); });
}

}  // namespace kiln::dispatch::host
