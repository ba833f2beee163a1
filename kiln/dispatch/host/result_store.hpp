#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/host/tiles.hpp"

namespace kiln::dispatch::host {

/// The store of a reduction or a kernel on the host. It applies the epilogue, if there is one, and
/// writes to memory.
class ResultStore {
 public:
  /// `value` is the result as it is before; `results` those that are stored, dense.
  ResultStore(cpu::CpuRuntime& runtime, std::string_view op, const FusedEpilogue* epilogue,
              const TensorSpec& value, std::span<const RawTensor> results);

  class State {
   public:
    explicit State(const ResultStore& epilogue) {
      if (epilogue.program_) state_.emplace(*epilogue.program_);
    }

   private:
    friend class ResultStore;
    std::optional<TileProgram::State> state_;
  };

  /// Stores n values, at most a tile: elements [first, first + n) of the result.
  void apply(State& state, std::int64_t first, std::size_t n, const std::byte* values) const;
  /// Stores any number of values, on several threads. Values that are in their place already stay.
  void apply_all(std::int64_t first, std::int64_t count, const std::byte* values) const;

 private:
  std::size_t size_;  ///< bytes of a value
  std::byte* plain_;  ///< where values go if there is no epilogue
  std::optional<TileProgram> program_;
};

}  // namespace kiln::dispatch::host
