#pragma once
/// Programs made of others: a part, the same on other numbers, the smallest that still fails.
#include <string>
#include <vector>

#include "fuzz/program.hpp"

namespace kiln::fuzz {

/// What of a program is run.
struct Part {
  std::vector<int> keep;   ///< steps, by number; empty: all
  std::vector<int> fixed;  ///< of those: results become inputs of the same numbers
};

/// The program of those steps; one whose operands are gone is left out.
Model part_of(const Model& program, const Part& part);

/// The same steps on other numbers: what kiln has compiled for the program serves this one, too.
Model varied(const Model& program, std::uint64_t seed);

/// The smallest part that was found for which this program, started with `arguments` and options
/// that name the part, does not end with 0. `alone`: whether the whole program fails by itself.
Part minimise(const Model& program, const std::vector<std::string>& arguments, bool* alone);

/// The options that name a part: "--keep 1,2 --fixed 2".
std::vector<std::string> to_arguments(const Part& part);

}  // namespace kiln::fuzz
