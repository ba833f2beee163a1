#include "model.hpp"

#include <cmath>

#include "data.hpp"
#include "examples/matmul_bias_relu/matmul_bias_relu.hpp"
#include "kiln/kiln.hpp"

namespace example {

using namespace kiln;

Parameters make_parameters(std::uint64_t seed, const Device& device) {
  constexpr std::array<std::int64_t, 4> widths{pixels_per_image, 128, 64, classes};
  Parameters parameters;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const double deviation =
        std::sqrt(2.0 / static_cast<double>(widths[i]));  // as He et al. do for ReLU
    const std::uint64_t stream = seed * widths.size() + i;
    parameters.push_back(
        random_normal({widths[i], widths[i + 1]}, stream, {0, deviation}, device).require_grad());
    parameters.push_back(zeros({widths[i + 1]}, device).require_grad());
  }
  return parameters;
}

Tensor<2> logits(const Parameters& parameters, const Tensor<2>& images) {
  AnyTensor x = unsqueeze(images, 0);  // the fused operation takes batches of matrices: one here
  std::size_t i = 0;
  for (; i + 2 < parameters.size(); i += 2) {
    const AnyTensor weight = unsqueeze(parameters[i], 0);
    const AnyTensor bias = broadcast_to(parameters[i + 1], {1, x.dim(1), weight.dim(-1)});
    x = tiled_matmul_bias_relu(x, weight, bias);
  }
  return matmul(reshape(x, {images.dim(0), -1}), parameters[i]) + parameters[i + 1];
}

}  // namespace example
