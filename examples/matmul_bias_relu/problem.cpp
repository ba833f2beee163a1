#include "problem.hpp"

#include "matmul_bias_relu.hpp"

namespace example {

using namespace kiln;

Problem make_problem(const Sizes& sizes, DType dtype, const Device& device, bool tracked,
                     std::uint64_t seed) {
  const auto random = [&](const Shape& shape, std::uint64_t stream) {
    const AnyTensor x = random_uniform(shape, 4 * seed + stream, {-1, 1}, dtype, device.autodiff());
    return tracked ? x.require_grad() : x;
  };
  const auto& [b, m, k, n, broadcast_lhs] = sizes;
  return {.sizes = sizes,
          .lhs = random({broadcast_lhs ? 1 : b, m, k}, 0),
          .rhs = random({b, k, n}, 1),
          .bias = random({b, m, n}, 2),
          .seed = random({b, m, n}, 3).detach()};
}

std::vector<Candidate> candidates() {
  return {
      {"custom",
       [](const Problem& p) -> AnyTensor { return matmul_bias_relu(p.lhs, p.rhs, p.bias); }},
      {"custom tiled",
       [](const Problem& p) -> AnyTensor { return tiled_matmul_bias_relu(p.lhs, p.rhs, p.bias); }},
      {"plain",
       [](const Problem& p) -> AnyTensor {
         return matmul_bias_relu_reference(p.lhs, p.rhs, p.bias);
       }},
      {"matmul", [](const Problem& p) { return matmul(p.lhs, p.rhs); }, false},
  };
}

Outcome call(const Candidate& candidate, const Problem& problem) {
  Outcome outcome{candidate.run(problem), std::nullopt};
  if (outcome.out.tracked()) outcome.gradients = vjp({&outcome.out, 1}, {&problem.seed, 1});
  return outcome;
}

}  // namespace example
