#include "checks.hpp"

#include "kiln/check/check.hpp"
#include "rules.hpp"

namespace example {

std::vector<CheckReport> check_operations(const Device& device, DType dtype) {
  const CheckOptions options{.devices = {device}, .cases = matmul_cases(), .dtypes = {dtype}};
  return {check_op(MatmulBiasRelu{}, options), check_op(TiledMatmulBiasRelu{}, options)};
}

}  // namespace example
