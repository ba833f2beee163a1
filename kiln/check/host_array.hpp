#pragma once
/// Tensors on the host, for looking at every element.
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/check/check.hpp"

namespace kiln::check {

/// All elements in row-major order. Double holds every element of every dtype exactly.
struct HostArray {
  TensorSpec spec;
  std::vector<double> values;
  std::int64_t unwritten = -1;  ///< the first element that still is the poison; -1: none
};

/// "[0, 4, 5]", of element `flat` in row-major order.
std::string index_text(const Shape& shape, std::int64_t flat);

/// The nearest number that `dtype` has.
double rounded(double value, DType dtype);

/// Element i depends on seed and i alone, on every machine.
HostArray random_array(const TensorSpec& spec, const InputValues& values, std::uint64_t seed);

/// How the elements of an input lie in memory.
struct Form {
  enum Kind : std::uint8_t { dense, transposed, sliced, broadcast } kind = dense;
  bool last = false;  ///< broadcast along the last axis that is longer than 1, else along the first
};
/// " as a transposed view"; empty for dense.
std::string to_string(Form form);
/// Whether this form of a tensor of this shape differs from its other forms.
bool has_form(const Shape& shape, Form form);
/// The values that a tensor of `array` in this form has: others than the array's own for broadcast.
HostArray seen_through(const HostArray& array, Form form);

/// The array on a device, as `dtype` and in the form. Around a sliced view all is NaN (0 in
/// integers). `array` must be seen through `form`.
AnyTensor upload(const HostArray& array, DType dtype, Form form, const Device& device);

/// Waits.
HostArray download(const AnyTensor& tensor);

/// Two arrays of one shape, element by element.
struct Comparison {
  std::int64_t compared = 0;
  std::int64_t worst = -1;  ///< index of the worst element; -1 without elements
  double actual = 0;
  double expected = 0;
  double allowed = 0;  ///< at the worst element
  double max_abs = 0;  ///< of the worst element
  double max_rel = 0;
  double excess = 0;  ///< difference in units of what is allowed
  [[nodiscard]] bool pass() const { return excess <= 1; }
};

/// NaN agrees with NaN, an infinity with itself, and nothing else with them. Integers must be
/// equal.
Comparison compare(const HostArray& actual, const HostArray& expected, Tolerance tolerance);

/// The tolerance of a result that adds up `terms` terms.
Tolerance grown(Tolerance tolerance, double terms);

}  // namespace kiln::check
