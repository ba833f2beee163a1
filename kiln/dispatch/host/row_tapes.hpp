#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kiln/dispatch/rows/prepared_stages.hpp"
#include "kiln/scalar/host/tape.hpp"

namespace kiln::dispatch::host {

/// Where the tape of a stage finds an input.
struct RowSource {
  enum class Kind : std::uint8_t {
    operand,  ///< of the call
    fold,     ///< the values of a fold, as they are stored
    value,    ///< what a tape computed once a row
    kept,     ///< what a tape computed for each element, and kept
    result,   ///< what this tape computes
  };
  Kind kind = Kind::result;
  std::size_t index = 0;
};

/// What a stage computes once a row, or for each element.
struct RowTape {
  std::vector<RowSource> in;  ///< what the tape takes before its places
  BodyTypes types;
  std::optional<Tape> tape;  ///< none if there is nothing to compute
};

/// A stage. First `rows` is run, then `elements`, then what is to be folded is folded.
struct StageTapes {
  RowTape rows;                          ///< its results are `values`, then `row_results`
  std::vector<std::size_t> values;       ///< numbers among all values of a row
  std::vector<std::size_t> row_results;  ///< numbers of the call's results
  RowTape elements;                      ///< its results are `kept`, `results`, what is folded
  std::vector<std::size_t> kept;         ///< numbers among all that is kept of an element
  std::vector<std::size_t> results;      ///< numbers of the call's results
  std::optional<RowSource> folded;       ///< the elements that the stage folds
};

/// The body of a RowsCall as tapes. They depend on no size.
struct PreparedRows : Prepared {
  std::shared_ptr<const PreparedStages> from;
  std::vector<StageTapes> stages;
  std::size_t values = 0;  ///< how many are computed once a row
  std::size_t kept = 0;    ///< how many are kept of each element
};

/// The call's tapes. They are made once for each runtime.
std::shared_ptr<const PreparedRows> prepare_rows(Runtime& runtime, const RowsCall& call,
                                                 std::span<const RawTensor> inputs);

}  // namespace kiln::dispatch::host
