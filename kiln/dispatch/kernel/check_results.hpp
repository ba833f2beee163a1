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

/// Throws ShapeError or DTypeError if result number `i` differs from what the output rule said.
void check_spec(const MadeBy& by, std::size_t i, const TensorSpec& got, const TensorSpec& promised);
/// Throws KernelError for an empty handle, DeviceError for a tensor of another device, and
/// ShapeError for one that lies outside of its buffer. `promised` is for the message.
void check_usable(const MadeBy& by, std::size_t i, const std::shared_ptr<Runtime>& runtime,
                  const RawTensor& result, const TensorSpec* promised = nullptr);
/// Does both for all results. Throws also if there are more or fewer results than promised.
void check_results(const MadeBy& by, const std::shared_ptr<Runtime>& runtime,
                   std::span<const RawTensor> results, std::span<const TensorSpec> promised);

}  // namespace kiln::dispatch
