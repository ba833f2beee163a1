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
  std::int64_t unwritten = -1;  ///< the first element that is still the poison; -1: none
};

/// The index of element `flat` in row-major order, as "[0, 4, 5]".
std::string index_text(const Shape& shape, std::int64_t flat);

/// The nearest number that `dtype` has.
double rounded(double value, DType dtype);

/// Random elements. Element i depends on seed and i alone, on every machine.
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
/// The values of a tensor of `array` in this form. For broadcast they differ from the array's own.
HostArray seen_through(const HostArray& array, Form form);

/// The array on a device, as `dtype` and in the form. Everything around a sliced view is NaN (0 in
/// integers). `array` must come from seen_through(form).
AnyTensor upload(const HostArray& array, DType dtype, Form form, const Device& device);

/// The elements of a tensor. Waits for them.
HostArray download(const AnyTensor& tensor);

/// The comparison of two arrays of one shape, element by element.
struct Comparison {
  std::int64_t compared = 0;
  std::int64_t worst = -1;  ///< index of the worst element; -1 without elements
  double actual = 0;
  double expected = 0;
  double allowed = 0;  ///< at the worst element
  double max_abs = 0;  ///< of the worst element
  double max_rel = 0;
  double excess = 0;  ///< the difference divided by what is allowed
  [[nodiscard]] bool pass() const { return excess <= 1; }
};

/// Compares them. NaN agrees only with NaN, an infinity only with itself. Integers must be equal.
Comparison compare(const HostArray& actual, const HostArray& expected, Tolerance tolerance);

/// The tolerance of a result that adds up `terms` terms.
Tolerance grown(Tolerance tolerance, double terms);

}  // namespace kiln::check
