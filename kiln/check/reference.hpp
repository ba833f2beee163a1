#pragma once
/// The reference with which an operation is compared.
#include <functional>
#include <span>
#include <vector>

#include "kiln/check/checked_op.hpp"
#include "kiln/check/host_array.hpp"

namespace kiln::check {

using HostArrays = std::vector<HostArray>;

/// The reference as functions over arrays on the host. Floats are computed in f32 or better,
/// whatever dtype their arrays were rounded to.
struct Reference {
  std::function<HostArrays(const HostArrays& in)> values;
  /// One for each input; without elements for an input that is no float.
  std::function<HostArrays(const HostArrays& in, const HostArrays& seeds)> gradients;
  /// The specs of the results for inputs of exactly these dtypes.
  std::function<std::vector<TensorSpec>(std::span<const TensorSpec>)> specs;
  /// The references of the operation's `others`.
  std::vector<Reference> others{};
};

/// The operation's own reference, run on `device`, or its body, evaluated on the host.
Reference make_reference(const CheckedOp& op, const Device& device);

/// Random weights for every float result; no elements for others.
HostArrays random_seeds(const HostArrays& results, DType dtype, std::uint64_t seed);

/// Derivatives of the weighted sum of all results by a few elements of one input.
struct Slopes {
  std::vector<std::int64_t> elements;
  std::vector<double> values;
};

/// Central differences of the reference at up to `samples` elements of input `which`. An element is
/// left out if a result has a kink within the step. A kink shows in that differences at half the
/// step do not agree, or that the difference of the two sides does not halve.
Slopes differences(const Reference& reference, const HostArrays& in, const HostArrays& seeds,
                   std::size_t which, std::int64_t samples, std::uint64_t seed);

}  // namespace kiln::check
