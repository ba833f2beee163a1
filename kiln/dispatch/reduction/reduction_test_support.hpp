#pragma once
/// For the tests of reductions: tensors whose numbers are known, and the same reduction on the
/// host.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "kiln/dispatch/reduction/reduction.hpp"
#include "kiln/dispatch/test_support.hpp"

namespace kiln::test {

/// Where each element of a layout lies in the buffer, in order. Written for builds that do not
/// optimise, as is what computes with it: tests ask for millions.
inline std::vector<std::int64_t> places_of(const Layout& layout) {
  std::vector<std::int64_t> places{layout.offset};
  for (std::size_t axis = 0; axis < layout.shape.size(); ++axis) {
    const std::int64_t size = layout.shape[static_cast<int>(axis)];
    const std::int64_t stride = layout.strides[axis];
    std::vector<std::int64_t> along(places.size() * static_cast<std::size_t>(size));
    std::int64_t* next = along.data();
    for (const std::int64_t first : places) {
      for (std::int64_t i = 0; i < size; ++i) *next++ = first + i * stride;
    }
    places = std::move(along);
  }
  return places;
}

/// A tensor and the numbers in its whole buffer.
struct Given {
  RawTensor tensor;
  std::vector<double> buffer;

  /// The elements in order, once the tensor is broadcast to `shape`.
  [[nodiscard]] std::vector<double> elements(const Shape& shape) const {
    const std::vector<std::int64_t> places = places_of(tensor.layout.broadcast_to(shape));
    std::vector<double> out(places.size());
    double* next = out.data();
    for (const std::int64_t place : places) *next++ = buffer[static_cast<std::size_t>(place)];
    return out;
  }
};

inline std::vector<std::vector<double>> elements_of(const std::vector<Given>& inputs,
                                                    const Shape& shape) {
  std::vector<std::vector<double>> out;
  for (const Given& x : inputs) out.push_back(x.elements(shape));
  return out;
}

/// What an array of `dtype` holds after `value` was stored in it.
inline double stored(double value, DType dtype) {
  if (dtype == DType::f16) return float16(static_cast<float>(value));
  return dtype == DType::f32 ? static_cast<float>(value) : value;
}

inline Client given_client() { return {device().shared_runtime(), "given"}; }

/// The numbers of a dense or strided tensor, in order.
inline std::vector<double> numbers_of(RawTensor x) {
  if (x.dtype == DType::boolean) x.dtype = DType::u32;
  const auto widened = [](const auto& values) {
    return std::vector<double>(values.begin(), values.end());
  };
  switch (x.dtype) {
    case DType::f32:
      return widened(given_client().read<float>(x));
    case DType::f16:
      return widened(given_client().read<float16>(x));
    case DType::i32:
      return widened(given_client().read<std::int32_t>(x));
    default:
      return widened(given_client().read<std::uint32_t>(x));
  }
}

template <class T>
RawTensor upload_as(const std::vector<double>& values) {
  std::vector<T> typed;
  for (const double v : values) {
    if constexpr (std::is_same_v<T, float16>)
      typed.emplace_back(static_cast<float>(v));
    else
      typed.push_back(static_cast<T>(v));
  }
  return given_client().create(std::span<const T>(typed),
                               {static_cast<std::int64_t>(typed.size())});
}

/// Dense, the first element at `offset`.
inline Given given_values(std::vector<double> values, const Shape& shape, DType dtype = DType::f32,
                          std::int64_t offset = 0) {
  values.insert(values.begin(), static_cast<std::size_t>(offset), -77);
  Given out;
  out.tensor = dtype == DType::f32   ? upload_as<float>(values)
               : dtype == DType::f16 ? upload_as<float16>(values)
               : dtype == DType::i32 ? upload_as<std::int32_t>(values)
                                     : upload_as<std::uint32_t>(values);
  for (const double v : values) out.buffer.push_back(stored(v, dtype));
  out.tensor.dtype = dtype;
  out.tensor.layout = Layout::dense(shape);
  out.tensor.layout.offset = offset;
  return out;
}

inline Given given_wave(const Shape& shape, int seed = 0, DType dtype = DType::f32,
                        std::int64_t offset = 0) {
  const std::vector<float> numbers = wave(shape.elements(), seed);
  return given_values({numbers.begin(), numbers.end()}, shape, dtype, offset);
}

/// Axis i of the result is axis `order[i]` of `x`.
inline Given turned(Given x, const std::vector<int>& order) {
  Layout layout{.offset = x.tensor.layout.offset};
  for (std::size_t i = 0; i < order.size(); ++i) {
    layout.shape.push_back(x.tensor.shape()[order[i]]);
    layout.strides[i] = x.tensor.layout.stride(order[i]);
  }
  x.tensor.layout = layout;
  return x;
}

inline Axes axes_of(unsigned bits) { return Axes::of_bits(bits); }

inline Shape reduced_shape(const Shape& shape, Axes axes) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!axes[static_cast<std::size_t>(axis)]) out.push_back(shape[axis]);
  }
  return out;
}

inline TensorSpec out_of(const dispatch::ReductionCall& call, std::optional<DType> dtype = {}) {
  return {reduced_shape(call.shape, call.reduction.axes), dtype.value_or(call.dtype)};
}

/// The elements that are reduced: those of the first result in order, then those of the next.
inline std::vector<double> elements_of(const dispatch::ReductionCall& call,
                                       const std::vector<Given>& inputs) {
  const std::vector<std::vector<double>> given = elements_of(inputs, call.shape);
  Layout results{.shape = call.shape};  // elements that are reduced together lie at one place
  std::int64_t count = 1;
  for (std::size_t axis = call.shape.size(); axis-- > 0;) {
    if (call.reduction.axes[axis]) continue;
    results.strides[axis] = count;
    count *= call.shape[static_cast<int>(axis)];
  }
  const std::vector<std::int64_t> places = places_of(results);
  std::vector<double> out(places.size());
  std::vector<double*> next(static_cast<std::size_t>(count));
  for (std::size_t r = 0; r < next.size(); ++r)
    next[r] = out.data() + r * (out.size() / next.size());
  std::vector<double> operands(given.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t k = 0; k < given.size(); ++k) operands[k] = given[k][i];
    const double value =
        call.before ? evaluate(*call.before, 0, operands, call.params) : operands[0];
    *next[static_cast<std::size_t>(places[i])]++ = stored(value, call.dtype);
  }
  return out;
}

/// One result in double precision, before it is scaled.
inline double combined(Combine combine, std::span<const double> elements) {
  const bool most = combine == Combine::max || combine == Combine::argmax;
  if (combine == Combine::sum) {
    double sum = 0;
    for (const double x : elements) sum += x;
    return sum;
  }
  if (combine == Combine::norm) {
    double squares = 0;
    for (const double x : elements) squares += x * x;
    return std::sqrt(squares);
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < elements.size(); ++i) {
    if (std::isnan(elements[best])) break;
    const bool better = most ? elements[i] > elements[best] : elements[i] < elements[best];
    if (better || std::isnan(elements[i])) best = i;
  }
  const bool value = combine == Combine::max || combine == Combine::min;
  return value ? elements[best] : static_cast<double>(best);
}

inline std::vector<double> reduced_on_host(const dispatch::ReductionCall& call,
                                           const std::vector<Given>& inputs, DType out) {
  const std::vector<double> elements = elements_of(call, inputs);
  std::vector<double> results(
      static_cast<std::size_t>(reduced_shape(call.shape, call.reduction.axes).elements()));
  const std::size_t each = results.empty() ? 0 : elements.size() / results.size();
  for (std::size_t r = 0; r < results.size(); ++r) {
    const double value =
        combined(call.reduction.combine, std::span(elements).subspan(r * each, each));
    results[r] = stored(is_float(out) ? value * call.reduction.scale : value, out);
  }
  return results;
}

inline std::vector<RawTensor> tensors_of(const std::vector<Given>& given) {
  std::vector<RawTensor> tensors;
  for (const Given& x : given) tensors.push_back(x.tensor);
  return tensors;
}

inline std::vector<RawTensor> run(const dispatch::ReductionCall& call,
                                  const std::vector<Given>& inputs, const TensorSpec& out,
                                  const dispatch::FusedEpilogue* epilogue = nullptr) {
  return dispatch::run_reduction(call, device().shared_runtime(), tensors_of(inputs), out,
                                 epilogue);
}

inline std::string describe(const dispatch::ReductionCall& call) {
  return to_string(call.shape) + " over " + call.reduction.axes.to_string() + " by " +
         std::to_string(static_cast<int>(call.reduction.combine));
}

/// How far a result may be off; integers must be equal.
inline double tolerance_of(const dispatch::ReductionCall& call, DType out) {
  if (!is_float(out)) return 0;
  if (out == DType::f16) return 2e-3;
  return call.shape.elements() > 1000 ? 2e-5 : 4e-6;
}

/// Runs the reduction and compares with the host. `out`: the result's dtype, where it is not that
/// of the elements.
inline void expect_reduction(const dispatch::ReductionCall& call, const std::vector<Given>& inputs,
                             std::optional<DType> out = {}) {
  const TensorSpec spec = out_of(call, out);
  const std::vector<RawTensor> results = run(call, inputs, spec);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].spec(), spec);
  EXPECT_TRUE(results[0].layout.is_dense());
  expect_near(numbers_of(results[0]), reduced_on_host(call, inputs, spec.dtype),
              tolerance_of(call, spec.dtype), describe(call));
}

/// A tensor that broadcasts to `shape`, by the choice of RapidCheck: some axes of size 1, those of
/// memory in another order, behind an offset.
inline Given arbitrary_given(const Shape& shape) {
  std::vector<int> order;
  for (int axis = 0; axis < shape.rank(); ++axis)
    order.insert(order.begin() + *rc::gen::inRange(0, axis + 1), axis);
  Shape in_memory;
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    in_memory.push_back(*rc::gen::inRange(0, 3) == 0 ? 1 : shape[order[i]]);
    back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  return turned(
      given_wave(in_memory, *rc::gen::inRange(0, 50), DType::f32, *rc::gen::inRange(0, 5)), back);
}

inline Shape arbitrary_shape() {
  return Shape(*rc::gen::resize(4, rc::gen::container<std::vector<std::int64_t>>(
                                       rc::gen::element<std::int64_t>(1, 2, 3, 4, 7, 8, 12, 40))));
}

}  // namespace kiln::test
