#pragma once
/// Runs the operation once and records everything about the run.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/check/reference.hpp"

namespace kiln::check {

/// How the operation is to be run.
struct Setup {
  std::vector<Form> forms;    ///< of each input; empty: all dense
  std::vector<bool> tracked;  ///< which inputs want a gradient; empty: no gradients at all
  Form seed_form{};           ///< of the incoming gradients
  Checkpointing checkpointing = Checkpointing::keep;
  /// Inputs are results of a cheap operation. Results are used by another operation and dropped. So
  /// everything that may be recomputed or fused is.
  bool in_a_chain = false;
  enum class Mode : std::uint8_t { as_given, lazy, eager } mode = Mode::as_given;
  /// The first tensor of these two is given as both.
  std::optional<std::pair<std::size_t, std::size_t>> shared{};
};

/// The outcome of a run. Nothing is thrown; errors are text.
struct Outcome {
  HostArrays out;
  std::vector<bool> tracked;
  HostArrays gradients;  ///< of the tracked inputs, by position
  std::string forward_error;
  bool wrong_spec = false;  ///< the forward error is about a shape or a dtype
  std::string backward_error;
  std::string memory_error;
};

/// Runs `op` on inputs of the arrays' own dtypes, forward and, if an input is tracked, backward.
Outcome execute(const CheckedOp& op, const Device& device, const HostArrays& in,
                const HostArrays& seeds, const Setup& setup);

}  // namespace kiln::check
