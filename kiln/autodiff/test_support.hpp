#pragma once
/// For tests of this stage and those above: tensors from numbers, and gradients against
/// differences.
#include <pthread.h>

#include <functional>

#include "kiln/autodiff/gradients.hpp"
#include "kiln/dispatch/test_support.hpp"

namespace kiln::test {

template <class T>
AnyTensor make(const std::vector<T>& values, const Shape& shape, const Device& where = device()) {
  const Client client(where.shared_runtime(), "test");
  return {Value(client.create(std::span<const T>(values), shape)), where};
}

/// Numbers as f32 or f16.
inline AnyTensor make(const std::vector<float>& values, const Shape& shape, DType dtype,
                      const Device& where = device()) {
  if (dtype == DType::f32) return make(values, shape, where);
  std::vector<float16> half;
  for (const float v : values) half.emplace_back(v);
  return make(half, shape, where);
}

inline AnyTensor make_wave(const Shape& shape, int seed = 0, DType dtype = DType::f32,
                           const Device& where = device()) {
  return make(wave(shape.elements(), seed), shape, dtype, where);
}

/// The elements as floats, whatever the dtype.
inline std::vector<float> values(const AnyTensor& t) {
  const auto widened = [](const auto& from) {
    std::vector<float> out;
    for (const auto v : from) out.push_back(static_cast<float>(v));
    return out;
  };
  switch (t.dtype()) {
    case DType::f32:
      return t.to_vector<float>();
    case DType::f16:
      return widened(t.to_vector<float16>());
    case DType::i32:
      return widened(t.to_vector<std::int32_t>());
    case DType::u32:
      return widened(t.to_vector<std::uint32_t>());
    case DType::boolean:
      return widened(t.to_vector<bool>());
  }
  return {};
}

/// Computes it now, and throws the error, if there is one.
inline void evaluate(const AnyTensor& t) { (void)t.value().raw(); }

inline std::vector<double> doubles(const std::vector<float>& from) {
  return {from.begin(), from.end()};
}

using Function = std::function<AnyTensor(const std::vector<AnyTensor>&)>;

/// The gradients of sum(f(inputs) * weights) in each of the inputs.
inline std::vector<AnyTensor> gradients_of(
    const Function& f, std::vector<AnyTensor> inputs,
    const std::function<AnyTensor(const AnyTensor&)>& weights,
    Checkpointing strategy = Checkpointing::keep) {
  for (AnyTensor& t : inputs) t = t.to(t.device().autodiff(strategy)).require_grad();
  const AnyTensor out = f(inputs);
  const AnyTensor seed = weights(out);
  const Gradients found = vjp({&out, 1}, {&seed, 1});
  std::vector<AnyTensor> gradients;
  for (const AnyTensor& t : inputs) gradients.push_back(found.of(t));
  return gradients;
}

/// The same with arbitrary weights.
inline std::vector<AnyTensor> gradients_of(const Function& f, std::vector<AnyTensor> inputs,
                                           Checkpointing strategy = Checkpointing::keep) {
  const auto made_up = [](const AnyTensor& out) {
    return make_wave(out.shape(), 5, out.dtype(), out.device());
  };
  return gradients_of(f, std::move(inputs), made_up, strategy);
}

/// The same with one number as every weight.
inline std::vector<AnyTensor> gradients_of(const Function& f, std::vector<AnyTensor> inputs,
                                           float weight) {
  const auto weights = [=](const AnyTensor& out) {
    const auto n = static_cast<std::size_t>(out.shape().elements());
    return make(std::vector<float>(n, weight), out.shape(), out.dtype(), out.device());
  };
  return gradients_of(f, std::move(inputs), weights);
}

/// Compares all gradients of f at `inputs` (f32) with central differences.
inline void expect_gradients(const std::string& what, const Function& f,
                             const std::vector<AnyTensor>& inputs, double tolerance = 3e-3) {
  constexpr float step = 1.0F / 128;
  const std::vector<AnyTensor> gradients = gradients_of(f, inputs);
  const auto weighted = [&](const std::vector<AnyTensor>& at) {
    const std::vector<float> out = f(at).to_vector();
    const std::vector<float> weights = wave(static_cast<std::int64_t>(out.size()), 5);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += double{out[i]} * double{weights[i]};
    return sum;
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    ASSERT_EQ(gradients[k].spec(), inputs[k].spec()) << what;
    EXPECT_FALSE(gradients[k].tracked()) << what;
    const std::vector<float> at = inputs[k].to_vector();
    std::vector<double> expected;
    for (std::size_t i = 0; i < at.size(); ++i) {
      double difference = 0;
      for (const float sign : {1.0F, -1.0F}) {
        std::vector<float> moved = at;
        moved[i] += sign * step;
        std::vector<AnyTensor> in = inputs;
        in[k] = make(moved, inputs[k].shape(), inputs[k].device());
        difference += double{sign} * weighted(in);
      }
      expected.push_back(difference / (2 * double{step}));
    }
    expect_near(gradients[k].to_vector(), expected, tolerance,
                what + ": input " + std::to_string(k));
  }
}

/// Runs `action` on a thread whose stack has no room for a recursion of many thousand calls.
inline void on_a_small_stack(std::function<void()> action) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 512 << 10), 0);
  pthread_t thread{};
  const auto call = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, call, &action), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
}

}  // namespace kiln::test
