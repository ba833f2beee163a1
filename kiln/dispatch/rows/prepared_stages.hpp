#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/rows/row_stages.hpp"

namespace kiln::dispatch {

/// The stages of a RowsCall, and what they follow from.
struct PreparedStages : Prepared {
  BodyPtr body;            // keeps the address in the key taken
  std::vector<char> wide;  ///< of each operand, whether it differs within a row
  BodyTypes types;
  RowStages stages;
};

/// The call's stages, which keep elements for later stages or not. They are made once for each
/// runtime, whatever the sizes.
std::shared_ptr<const PreparedStages> prepare_stages(Runtime& runtime, const RowsCall& call,
                                                     std::span<const RawTensor> inputs,
                                                     bool keeps = true);

}  // namespace kiln::dispatch
