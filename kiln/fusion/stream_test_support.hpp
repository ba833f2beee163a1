#pragma once
/// For tests of the queue: values from numbers, and a few operations on them.
#include <vector>

#include "kiln/dispatch/test_support.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/scalar/body_of_test.hpp"
#include "kiln/support/error.hpp"

namespace kiln::test::queue {

/// Lazy, whatever the environment says: what is looked at here is the queue.
inline const Device& lazy() {
  static const Device queueing = device().lazy();
  return queueing;
}

inline Value given(const std::vector<float>& values, const Shape& shape) {
  const Client client(lazy().shared_runtime(), "test");
  return Value(client.create(std::span<const float>(values), shape));
}

inline std::vector<float> read(const Value& value) {
  const Client client(lazy().shared_runtime(), "test");
  return client.read<float>(value.raw());
}

template <class F>
Value apply(std::string_view name, F f, const std::vector<Value>& in, const Device& on = lazy()) {
  Shape shape;
  for (const Value& v : in) shape = broadcast(name, shape, v.shape());
  const TensorSpec spec{shape, in[0].dtype()};
  return record({name, ElementwiseCall{body_of(f), {}}}, on, in, {&spec, 1}).front();
}

inline Value twice(const Value& x) {
  return apply("twice", [](Expr v) { return v + v; }, {x});
}
inline Value plus(const Value& a, const Value& b) {
  return apply("plus", [](Expr x, Expr y) { return x + y; }, {a, b});
}

inline Value transposed(const Value& x) {
  Layout layout = x.layout();
  std::swap(layout.shape[0], layout.shape[1]);
  std::swap(layout.strides[0], layout.strides[1]);
  return Stream::of(lazy().runtime()).view("transposed", x, layout);
}

/// A call by hand that throws.
inline Value broken(const Value& x) {
  return Stream::of(lazy().runtime())
      .launch("broken", lazy(), {&x, 1}, {&x.spec(), 1},
              [](Client&, std::span<const RawTensor>) -> std::vector<RawTensor> {
                throw KernelError("broken: on purpose");
              })
      .front();
}

}  // namespace kiln::test::queue
