#include "kiln/dispatch/host/tiles.hpp"

#include <algorithm>
#include <cstring>

#include "kiln/dispatch/host/places.hpp"
#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/cpu/parallel.hpp"

namespace kiln::dispatch::host {

std::int64_t position(const CoalescedAxes& axes, std::size_t operand, std::int64_t index) {
  std::int64_t at = 0;
  for (std::size_t axis = axes.rank; axis-- > 0;) {
    at += index % axes.sizes[axis] * axes.strides[operand][axis];
    index /= axes.sizes[axis];
  }
  return at;
}

TileReader::TileReader(const CoalescedAxes& axes, std::size_t operand, DType dtype, std::byte* base)
    : axes_(axes), operand_(operand), size_(size_of(dtype)), base_(base) {
  uniform_ = axes.is_single(operand);
  linear_ = axes.is_linear(operand);
}

TileArg TileReader::read(std::int64_t origin, std::int64_t first, std::size_t n,
                         void* buffer) const {
  if (linear_) return {at(origin + first), false};
  if (uniform_) return {at(origin), true};
  const std::int64_t inner = axes_.sizes[axes_.rank - 1];
  const std::int64_t stride = axes_.of(operand_).back();
  const bool within = first % inner + static_cast<std::int64_t>(n) <= inner;
  if (within && stride <= 1 && stride >= 0)
    return {at(origin + position(axes_, operand_, first)), stride == 0};
  gather(origin, first, n, buffer);
  return {buffer, false};
}

void TileReader::write(std::int64_t first, std::size_t n, const void* from) const {
  if (size_ == 2) {
    scatter<std::uint16_t>(first, n, from);
  } else {
    scatter<std::uint32_t>(first, n, from);
  }
}

TileArg TileReader::read(const Block& block, void* buffer) const {
  if (uniform_) return {base_, true};
  for (std::size_t row = 0; row < block.rows; ++row) {
    const std::int64_t first = block.first + static_cast<std::int64_t>(row) * block.pitch;
    gather(0, first, block.cols, static_cast<std::byte*>(buffer) + row * block.cols * size_);
  }
  return {buffer, false};
}

void TileReader::write(const Block& block, const void* from) const {
  for (std::size_t row = 0; row < block.rows; ++row) {
    write(block.first + static_cast<std::int64_t>(row) * block.pitch, block.cols,
          static_cast<const std::byte*>(from) + row * block.cols * size_);
  }
}

bool TileReader::lies_across() const {
  if (axes_.rank < 2) return false;
  const auto strides = axes_.of(operand_);
  return steps_lie_across(strides[axes_.rank - 2], strides.back());
}

/// Calls f(start of the elements, their step, number of the first, count) for every stretch along
/// the innermost axis.
template <class Word, class F>
void TileReader::each_run(std::int64_t origin, std::int64_t first, std::size_t n,
                          const F& f) const {
  if (axes_.rank == 0) return f(reinterpret_cast<Word*>(at(origin)), 0, 0, n);  // NOLINT
  const std::int64_t inner = axes_.sizes[axes_.rank - 1];
  std::size_t done = 0;
  while (done < n) {
    const std::int64_t index = first + static_cast<std::int64_t>(done);
    const std::size_t count = std::min(n - done, static_cast<std::size_t>(inner - index % inner));
    std::byte* start = at(origin + position(axes_, operand_, index));
    f(reinterpret_cast<Word*>(start), axes_.of(operand_).back(), done, count);  // NOLINT
    done += count;
  }
}

void TileReader::gather(std::int64_t origin, std::int64_t first, std::size_t n,
                        void* buffer) const {
  const auto as = [&]<class Word>(Word* to) {
    each_run<Word>(origin, first, n,
                   [&](const Word* from, std::int64_t step, std::size_t at, std::size_t count) {
                     for (std::size_t i = 0; i < count; ++i)
                       to[at + i] = from[static_cast<std::int64_t>(i) * step];
                   });
  };
  if (size_ == 2) return as(static_cast<std::uint16_t*>(buffer));
  as(static_cast<std::uint32_t*>(buffer));
}

template <class Word>
void TileReader::scatter(std::int64_t first, std::size_t n, const void* values) const {
  const auto* from = static_cast<const Word*>(values);
  each_run<Word>(0, first, n, [&](Word* to, std::int64_t step, std::size_t at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[static_cast<std::int64_t>(i) * step] = from[at + i];
  });
}

constexpr std::int64_t long_row = 256;

TileGrid::TileGrid(const CoalescedAxes& axes)
    : TileGrid(axes.count(), axes.rank == 0 ? 1 : axes.sizes[axes.rank - 1]) {}

TileGrid::TileGrid(std::int64_t count, std::int64_t inner) {
  length_ = inner >= long_row ? inner : count;
  rows_ = length_ == 0 ? 0 : count / length_;
  constexpr std::int64_t vectors = 16;
  const std::int64_t even =
      ceil_div(length_, std::max<std::int64_t>(ceil_div(length_, tile_size), 1));
  step_ = std::min(tile_size, ceil_div(even, vectors) * vectors);
  parts_ = step_ == 0 ? 0 : ceil_div(length_, step_);
}

TileGrid::Range TileGrid::tile(std::int64_t number) const {
  const std::int64_t row = number / parts_;
  const std::int64_t at = number % parts_ * step_;
  return {row * length_ + at, static_cast<std::size_t>(std::min(step_, length_ - at))};
}

BlockGrid::BlockGrid(const CoalescedAxes& axes) {
  if (axes.rank < 2) return;
  rows_ = axes.sizes[axes.rank - 2];
  cols_ = axes.sizes[axes.rank - 1];
  planes_ = rows_ * cols_ == 0 ? 0 : axes.count() / (rows_ * cols_);
  down_ = ceil_div(rows_, side);
  across_ = ceil_div(cols_, side);
}

bool BlockGrid::useful() const { return rows_ >= side && cols_ >= side && rows_ * cols_ > 4096; }

TileReader::Block BlockGrid::block(std::int64_t number) const {
  const std::int64_t col = number % across_ * side;
  const std::int64_t row = number / across_ % down_ * side;
  const std::int64_t plane = number / (across_ * down_);
  return {(plane * rows_ + row) * cols_ + col,
          static_cast<std::size_t>(std::min(side, rows_ - row)),
          static_cast<std::size_t>(std::min(side, cols_ - col)), cols_};
}

struct PreparedTape : Prepared {
  PreparedTape(std::string_view op, BodyPtr of, std::span<const DType> inputs,
               std::span<const TapeResult> results)
      : body(std::move(of)),
        types(infer(op, *body, inputs, results[0].dtype)),
        tape(*body, types, inputs, results) {}
  BodyPtr body;  // keeps the address in the key taken
  BodyTypes types;
  Tape tape;
};

std::shared_ptr<const PreparedTape> prepare_tape(Runtime& runtime, std::string_view op,
                                                 const BodyPtr& body, std::span<const DType> inputs,
                                                 std::span<const TapeResult> results) {
  std::string key = "t";
  append_bytes(key, body.get());
  for (const DType dtype : inputs) append_bytes(key, dtype);
  for (const TapeResult& result : results) {
    append_bytes(key, result.dtype);
    append_bytes(key, result.stored);
    append_bytes(key, result.apart);
  }
  return KernelCache::of(runtime).find_or<PreparedTape>(
      key, [&] { return std::make_shared<PreparedTape>(op, body, inputs, results); });
}

std::vector<std::uint32_t> param_words(std::string_view op, std::span<const double> params,
                                       const BodyTypes& types) {
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i < params.size(); ++i)
    words.push_back(word_of(op, params[i], types.params[i]));
  return words;
}

std::vector<std::uint32_t> param_words(std::string_view op, std::span<const double> params,
                                       const PreparedTape& prepared) {
  return param_words(op, params, prepared.types);
}

const Tape& tape_of(const PreparedTape& prepared) { return prepared.tape; }

TileProgram::TileProgram(cpu::CpuRuntime& runtime, const ElementwiseWork& work, const DType* value)
    : axes_(work.layouts.size()),
      shape_(work.shape),
      value_bytes_(value == nullptr ? 0 : size_of(*value)) {
  for (int axis = 0; axis < work.shape.rank(); ++axis) axes_.push(work.shape, axis, work.layouts);
  std::vector<DType> dtypes;
  if (value != nullptr) dtypes.push_back(*value);
  for (const RawTensor& t : work.inputs) dtypes.push_back(t.dtype);
  std::vector<TapeResult> results;
  for (const RawTensor& t : work.results) results.push_back({t.dtype, true});
  prepared_ = prepare_tape(runtime, work.op, work.body, dtypes, results);
  params_ = param_words(work.op, work.params, *prepared_);
  const auto reader = [&](const RawTensor& t, std::size_t operand) {
    std::byte* base = runtime.data_of(work.op, t.buffer);
    const std::int64_t offset = work.layouts[operand].offset;
    return TileReader(axes_, operand, t.dtype,
                      base + offset * static_cast<std::int64_t>(size_of(t.dtype)));
  };
  for (std::size_t i = 0; i < work.inputs.size(); ++i) inputs_.push_back(reader(work.inputs[i], i));
  for (std::size_t r = 0; r < work.results.size(); ++r)
    results_.push_back(reader(work.results[r], work.inputs.size() + r));
}

TileProgram::State::State(const TileProgram& program)
    : tape(program.prepared_->tape, program.params_),
      buffers((program.inputs_.size() + program.places().size() + program.results_.size()) *
              Tape::tile),
      args(program.inputs_.size() + program.places().size() + 1),
      results(program.results_.size()) {}

std::span<const int> TileProgram::places() const { return prepared_->tape.places(); }

void TileProgram::run(State& state, std::int64_t first, std::size_t n, const void* value) const {
  std::uint32_t* buffer = state.buffers.data();
  std::size_t arg = 0;
  if (value_bytes_ != 0) state.args[arg++] = {value, false};
  for (const TileReader& input : inputs_) {
    state.args[arg++] = input.read(0, first, n, buffer);
    buffer += Tape::tile;
  }
  for (const int axis : places()) {
    state.args[arg++] = place_tile(shape_, axis, first, n, buffer);
    buffer += Tape::tile;
  }
  for (std::size_t r = 0; r < results_.size(); ++r) {
    void* direct = results_[r].direct(first);
    state.results[r] = direct == nullptr ? buffer : direct;
    buffer += Tape::tile;
  }
  prepared_->tape.run(state.tape, std::span(state.args).first(arg), state.results, n);
  for (std::size_t r = 0; r < results_.size(); ++r) {
    if (results_[r].direct(first) == nullptr) results_[r].write(first, n, state.results[r]);
  }
}

void TileProgram::run(State& state, const TileReader::Block& block) const {
  std::uint32_t* buffer = state.buffers.data();
  std::size_t arg = 0;
  for (const TileReader& input : inputs_) {
    state.args[arg++] = input.read(block, buffer);
    buffer += Tape::tile;
  }
  for (const int axis : places()) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      const std::int64_t first = block.first + static_cast<std::int64_t>(row) * block.pitch;
      fill_place(shape_, axis, first, block.cols, buffer + row * block.cols);
    }
    state.args[arg++] = {buffer, false};
    buffer += Tape::tile;
  }
  for (void*& result : state.results) {
    result = buffer;
    buffer += Tape::tile;
  }
  prepared_->tape.run(state.tape, std::span(state.args).first(arg), state.results,
                      block.rows * block.cols);
  for (std::size_t r = 0; r < results_.size(); ++r) results_[r].write(block, state.results[r]);
}

std::int64_t grain_of(std::size_t tile_steps) {
  constexpr std::size_t worthwhile = 128;  // some ten microseconds
  return static_cast<std::int64_t>(
      std::max<std::size_t>(worthwhile / std::max<std::size_t>(tile_steps, 1), 1));
}

void TileProgram::run_all(std::int64_t first, std::int64_t count, const std::byte* values) const {
  const std::int64_t grain = grain_of(prepared_->tape.length());
  cpu::parallel_for(ceil_div(count, tile_size), grain, [&](std::int64_t begin, std::int64_t end) {
    State state(*this);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t at = t * tile_size;
      run(state, first + at, static_cast<std::size_t>(std::min(tile_size, count - at)),
          values + static_cast<std::size_t>(at) * value_bytes_);
    }
  });
}

/// In a tile of one row all coordinates but the last are the same, and so is much of what is
/// computed from them.
TileGrid TileProgram::grid() const {
  const std::int64_t row = shape_.rank() == 0 ? 1 : shape_[-1];
  return places().empty() || row < long_row ? TileGrid(axes_) : TileGrid(axes_.count(), row);
}

void TileProgram::run_all() const {
  const std::int64_t grain = grain_of(prepared_->tape.length());
  const BlockGrid blocks(axes_);
  if (blocks.useful() && std::ranges::any_of(inputs_, &TileReader::lies_across)) {
    cpu::parallel_for(blocks.count(), grain, [&](std::int64_t begin, std::int64_t end) {
      State state(*this);
      for (std::int64_t b = begin; b < end; ++b) run(state, blocks.block(b));
    });
    return;
  }
  const TileGrid grid = this->grid();
  cpu::parallel_for(grid.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    State state(*this);
    for (std::int64_t t = begin; t < end; ++t) {
      const TileGrid::Range range = grid.tile(t);
      run(state, range.first, range.count);
    }
  });
}

}  // namespace kiln::dispatch::host
