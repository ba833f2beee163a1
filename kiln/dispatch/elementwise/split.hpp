#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch {

/// Some results of a body, and what they need.
struct BodyPart {
  BodyPtr body;                      ///< over `inputs` and all params
  std::vector<std::size_t> inputs;   ///< numbers in the whole body, each another tensor
  std::vector<std::size_t> results;  ///< numbers in the whole body
};

/// Splits the body for an adapter that takes fewer buffers in a launch than the whole has. Each
/// part binds at most `most` buffers, if no single result needs more.
std::vector<BodyPart> split(const BodyPtr& body, std::span<const RawTensor> inputs,
                            std::size_t most);

}  // namespace kiln::dispatch
