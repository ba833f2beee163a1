#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/scalar/host/tile_kernels.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln {

/// A result of a tape, as it is stored or as further steps use it (f16 as a rounded f32).
struct TapeResult {
  DType dtype = DType::f32;
  bool stored = true;
  bool apart = false;  ///< it shares memory with no input, so it is written whenever it is ready
};

/// A body prepared for the host. Tile kernels run one after the other over tiles of elements, which
/// stay in the nearest cache.
///
///     const Tape tape(*body, types, inputs, results);
///     Tape::State state(tape, params);  // one a thread
///     tape.run(state, {{{x, false}}}, {{y}}, 1024);  // y[i] = body(x[i])
class Tape {
 public:
  /// The most elements of a tile.
  static constexpr std::size_t tile = 1024;

  /// `types` as infer() gives them for `inputs`.
  Tape(const Body& body, const BodyTypes& types, std::span<const DType> inputs,
       std::span<const TapeResult> results);

  /// The memory of a run: constants, params and intermediate values.
  class State {
   public:
    /// `params`: one word for each param, in the param's dtype (f16 as f32).
    State(const Tape& tape, std::span<const std::uint32_t> params);

   private:
    friend class Tape;
    std::vector<std::uint32_t> words_;  ///< constants, params, and what follows from them alone
    std::vector<std::uint32_t> tiles_;
    std::vector<char> uniform_;  ///< of each temp: whether one element stands for the tile
  };

  /// Computes `n` elements of every result, at most a tile, from `n` elements of every input. One
  /// that is read at positions is given where its buffer begins. After the inputs come places(). A
  /// result may share memory with an input, unless it is apart.
  void run(State& state, std::span<const TileArg> inputs, std::span<void* const> results,
           std::size_t n) const;

  /// The coordinates that run() takes after the body's inputs, one i32 for each element: their
  /// axes; -1 stands for the position, a u32.
  [[nodiscard]] const std::vector<int>& places() const { return places_; }
  /// How many tile kernels run for one tile.
  [[nodiscard]] std::size_t length() const { return tile_steps_.size(); }

 private:
  enum class Place : std::uint8_t { none, input, word, temp, result };
  struct Ref {
    Place place = Place::none;
    std::int32_t index = -1;
    bool operator==(const Ref&) const = default;
  };
  struct Step {
    TileKernel kernel = nullptr;
    std::array<Ref, 3> from;
    Ref to;
  };
  class Builder;

  std::vector<std::uint32_t> constants_;
  std::vector<int> places_;
  std::size_t params_ = 0;
  std::size_t words_ = 0;
  std::size_t temps_ = 0;
  std::vector<Step> word_steps_;  ///< of constants and params alone: once a state
  std::vector<Step> tile_steps_;
};

}  // namespace kiln
