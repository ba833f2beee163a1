#pragma once
/// What an operation is compared with.
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
  /// One an input; without elements for an input that is no float.
  std::function<HostArrays(const HostArrays& in, const HostArrays& seeds)> gradients;
  /// The results' specs for inputs of these very dtypes.
  std::function<std::vector<TensorSpec>(std::span<const TensorSpec>)> specs;
  /// Of the operation's `others`.
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

/// Central differences of the reference at up to `samples` elements of input `which`. An element
/// where a result bends within the step is passed over: differences at half the step must agree,
/// and the two sides' disagreement must halve with it.
Slopes differences(const Reference& reference, const HostArrays& in, const HostArrays& seeds,
                   std::size_t which, int samples, std::uint64_t seed);

}  // namespace kiln::check
