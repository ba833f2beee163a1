#pragma once
#include <string>

#include "problem.hpp"

namespace example {

/// Compares a result, and its gradients if it has some, with sums made on the host in double
/// precision: every element of a small problem, a spread of them in a large one, where the others
/// must be finite. Empty if all is well, else what is wrong, for people.
std::string fault_in(const Outcome& outcome, const Candidate& candidate, const Problem& problem);

}  // namespace example
