#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch {

/// Some results of a body, and what they are made of.
struct BodyPart {
  BodyPtr body;                      ///< of `inputs`, of all params
  std::vector<std::size_t> inputs;   ///< of the whole body's, each another tensor
  std::vector<std::size_t> results;  ///< of the whole body's
};

/// The body in parts for an adapter that takes fewer buffers in a launch than the whole has. Each
/// part binds at most `most` buffers, if each single result does.
std::vector<BodyPart> split(const BodyPtr& body, std::span<const RawTensor> inputs,
                            std::size_t most);

}  // namespace kiln::dispatch
