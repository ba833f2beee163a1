#pragma once
#include <cstdint>
#include <vector>

#include "kiln/autodiff/any_tensor.hpp"

namespace example {

/// A weight [inputs, outputs] and a bias [outputs] for each layer, one after the other.
using Parameters = std::vector<kiln::AnyTensor>;

/// Fresh parameters, marked as leaves; `device` has autodiff. The same seed, the same numbers.
Parameters make_parameters(std::uint64_t seed, const kiln::Device& device);

/// Scores [N, 10] of images [N, 64]. The one function for training and for inference: whether
/// gradients are kept is up to the parameters.
kiln::Tensor<2> logits(const Parameters& parameters, const kiln::Tensor<2>& images);

}  // namespace example
