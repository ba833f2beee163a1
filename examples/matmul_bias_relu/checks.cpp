#include "checks.hpp"

#include "rules.hpp"

namespace example {

std::vector<CheckReport> check_operations(
    const Device& device, DType dtype, const std::function<void(const CheckProgress&)>& progress) {
  const CheckOptions options{.devices = {device},
                             .cases = matmul_cases(),
                             .dtypes = {dtype},
                             .refused = {{"a bias of one row", {{3, 4}, {4, 5}, {1, 5}}},
                                         {"other contractions", {{3, 4}, {3, 5}, {3, 5}}}},
                             .progress = progress};
  return {check_op(MatmulBiasRelu{}, options), check_op(TiledMatmulBiasRelu{}, options)};
}

}  // namespace example
