#pragma once
/// The inputs that the program times its candidates on, and what a call of one gives.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/kiln.hpp"

namespace example {

struct Sizes {
  std::int64_t b = 1;
  std::int64_t m = 512;
  std::int64_t k = 512;
  std::int64_t n = 512;
  bool broadcast_lhs = false;  ///< lhs has a batch of one, whatever b is

  [[nodiscard]] double flops() const {
    return 2 * static_cast<double>(b) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

/// Random operands; marked as leaves if `tracked`. `seed` is the gradient that arrives at the
/// result.
struct Problem {
  Sizes sizes;
  kiln::AnyTensor lhs;
  kiln::AnyTensor rhs;
  kiln::AnyTensor bias;
  kiln::AnyTensor seed;
};
Problem make_problem(const Sizes& sizes, kiln::DType dtype, const kiln::Device& device,
                     bool tracked, std::uint64_t seed);

/// One of the ways to compute the result that are compared.
struct Candidate {
  std::string name;
  kiln::AnyTensor (*run)(const Problem& problem) = nullptr;
  bool fused = true;  ///< with bias and ReLU; else the matrix product alone
};
std::vector<Candidate> candidates();

/// What one call gave; gradients where the operands are tracked.
struct Outcome {
  kiln::AnyTensor out;
  std::optional<kiln::Gradients> gradients;
};
Outcome call(const Candidate& candidate, const Problem& problem);

}  // namespace example
