#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"
#include "kiln/scalar/host/tape.hpp"

namespace kiln::dispatch::host {

/// Elements of a tile.
inline constexpr auto tile_size = static_cast<std::int64_t>(Tape::tile);

/// Where an operand's element number `index` of the axes' space lies, in elements.
std::int64_t position(const CoalescedAxes& axes, std::size_t operand, std::int64_t index);

/// Whether elements that are a step `outer` apart lie closer together than those a step `inner`
/// apart.
constexpr bool steps_lie_across(std::int64_t outer, std::int64_t inner) {
  return inner > 1 && outer > 0 && outer < inner;
}

/// The fewest jobs for which a thread is worthwhile. A job takes as many steps of a tape over one
/// tile.
std::int64_t grain_of(std::size_t tile_steps);

/// The elements of one operand in the order of some axes, tile by tile.
class TileReader {
 public:
  /// `axes` must outlive this. `base` is where the operand's element 0 lies.
  TileReader(const CoalescedAxes& axes, std::size_t operand, DType dtype, std::byte* base);

  /// Elements [first, first + n) of the axes' space, moved by `origin` elements. They are read in
  /// place if they are contiguous or all one element, and else copied to `buffer`.
  [[nodiscard]] TileArg read(std::int64_t origin, std::int64_t first, std::size_t n,
                             void* buffer) const;
  /// Writes n elements to where read() finds them.
  void write(std::int64_t first, std::size_t n, const void* from) const;
  /// The same for a block: `rows` stretches of `cols` elements, `pitch` apart. They follow each
  /// other in the tile.
  struct Block {
    std::int64_t first = 0;
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::int64_t pitch = 0;
  };
  [[nodiscard]] TileArg read(const Block& block, void* buffer) const;
  void write(const Block& block, const void* from) const;
  /// Whether adjacent elements along the axis before the last lie closer together than along the
  /// last.
  [[nodiscard]] bool lies_across() const;
  /// Where elements [first, ...) can be written in place; null if they are not contiguous.
  [[nodiscard]] void* direct(std::int64_t first) const {
    return linear_ ? base_ + static_cast<std::size_t>(first) * size_ : nullptr;
  }
  [[nodiscard]] std::size_t operand() const { return operand_; }

 private:
  template <class Word, class F>
  void each_run(std::int64_t origin, std::int64_t first, std::size_t n, const F& f) const;
  void gather(std::int64_t origin, std::int64_t first, std::size_t n, void* buffer) const;
  template <class Word>
  void scatter(std::int64_t first, std::size_t n, const void* from) const;
  [[nodiscard]] std::byte* at(std::int64_t element) const {
    return base_ + element * static_cast<std::int64_t>(size_);
  }

  const CoalescedAxes& axes_;
  std::size_t operand_;
  std::size_t size_;  ///< bytes of an element
  std::byte* base_;
  bool linear_ = false;   ///< as dense as the axes' space
  bool uniform_ = false;  ///< one element for all
};

/// How a space of elements is cut into tiles. If rows are long, no tile crosses the end of a row.
/// So operands that are dense along rows alone are read where they lie.
class TileGrid {
 public:
  explicit TileGrid(const CoalescedAxes& axes);
  /// For `count` elements in rows of `inner`.
  TileGrid(std::int64_t count, std::int64_t inner);

  [[nodiscard]] std::int64_t count() const { return rows_ * parts_; }
  struct Range {
    std::int64_t first = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] Range tile(std::int64_t number) const;

 private:
  std::int64_t rows_ = 1;   ///< of `length_` elements
  std::int64_t parts_ = 1;  ///< of a row
  std::int64_t length_ = 0;
  std::int64_t step_ = 0;
};

/// A space of elements cut into blocks of the two innermost axes. It is for transposed operands: a
/// tile along one row would take one element from each of many cache lines.
class BlockGrid {
 public:
  explicit BlockGrid(const CoalescedAxes& axes);
  /// Whether blocks are worthwhile: both axes are long.
  [[nodiscard]] bool useful() const;
  [[nodiscard]] std::int64_t count() const { return planes_ * down_ * across_; }
  [[nodiscard]] TileReader::Block block(std::int64_t number) const;

 private:
  static constexpr std::int64_t side = 32;
  static_assert(side * side <= static_cast<std::int64_t>(Tape::tile));
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t planes_ = 0;
  std::int64_t down_ = 0;
  std::int64_t across_ = 0;
};

/// A tape, and what must live as long as its cache key.
struct PreparedTape;

/// The tape of `body` for those dtypes. It is made once for each runtime.
std::shared_ptr<const PreparedTape> prepare_tape(Runtime& runtime, std::string_view op,
                                                 const BodyPtr& body, std::span<const DType> inputs,
                                                 std::span<const TapeResult> results);
/// The params' words, as Tape::State takes them.
std::vector<std::uint32_t> param_words(std::string_view op, std::span<const double> params,
                                       const BodyTypes& types);
std::vector<std::uint32_t> param_words(std::string_view op, std::span<const double> params,
                                       const PreparedTape& prepared);
const Tape& tape_of(const PreparedTape& prepared);

/// One body over one space. Inputs broadcast to the space. They are read, and results written, tile
/// by tile.
class TileProgram {
 public:
  /// `value`: the dtype of the body's input 0 if run() gets that input and `inputs` are the others.
  TileProgram(cpu::CpuRuntime& runtime, const ElementwiseWork& work, const DType* value = nullptr);
  TileProgram(const TileProgram&) = delete;  // its readers point to its axes
  TileProgram& operator=(const TileProgram&) = delete;

  /// What one thread needs to run it.
  struct State {
    explicit State(const TileProgram& program);
    Tape::State tape;
    std::vector<std::uint32_t> buffers;  ///< a tile for each input, place and result
    std::vector<TileArg> args;
    std::vector<void*> results;
  };

  /// Elements [first, first + n), n at most a tile. `value`: those of the body's input 0.
  void run(State& state, std::int64_t first, std::size_t n, const void* value = nullptr) const;
  /// The same of any number of elements, on several threads; `values` are those from `first` on.
  void run_all(std::int64_t first, std::int64_t count, const std::byte* values) const;
  /// The whole space, on several threads.
  void run_all() const;

 private:
  void run(State& state, const TileReader::Block& block) const;

  [[nodiscard]] std::span<const int> places() const;
  [[nodiscard]] TileGrid grid() const;

  CoalescedAxes axes_;
  Shape shape_;
  std::shared_ptr<const PreparedTape> prepared_;
  std::vector<std::uint32_t> params_;
  std::vector<TileReader> inputs_;
  std::vector<TileReader> results_;
  std::size_t value_bytes_ = 0;  ///< of an element given to run(); 0 if none is
};

}  // namespace kiln::dispatch::host
