#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln::dispatch {

/// The maker of results, for messages about them.
struct MadeBy {
  std::string_view op;
  std::span<const std::string_view> outputs;  ///< names; may be fewer than results
  std::string_view rule;
};

/// Throws KernelError, DeviceError, ShapeError or DTypeError if `results` differ from `promised`.
void check_results(const MadeBy& by, const std::shared_ptr<Runtime>& runtime,
                   std::span<const RawTensor> results, std::span<const TensorSpec> promised);

}  // namespace kiln::dispatch
