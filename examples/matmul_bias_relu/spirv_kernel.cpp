// The second kernel: the same computation in GLSL, which the build compiles to SPIR-V.
#include "matmul_bias_relu_spirv.hpp"
#include "rules.hpp"

namespace example {

webgpu::Launch spirv_kernel(webgpu::Launch wgsl, const Operand& lhs, const Operand& rhs,
                            const Operand& out) {
  const auto decline = [](std::string why) {
    return webgpu::Launch::decline(std::move(why), Language::spirv);
  };
  if (out.dtype != DType::f32) return decline("the SPIR-V kernel is for f32");
  if (lhs.batch() != out.batch() || rhs.batch() != out.batch())
    return decline("the SPIR-V kernel does not broadcast batches");
  webgpu::Launch launch = std::move(wgsl);  // the same numbers, and the same grid
  launch.source = KernelSource::spirv(matmul_bias_relu_spirv);
  return launch;
}

}  // namespace example
