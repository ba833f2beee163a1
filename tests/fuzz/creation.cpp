// Tensors from nothing but numbers.
#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

Array constant(Model& m, const TensorSpec& spec, const std::function<double(std::int64_t)>& value,
               double error = 0) {
  Array out{.spec = spec};
  for (std::int64_t i = 0; i < spec.shape.elements(); ++i)
    out.ids.push_back(m.scalars().given(value(i), spec.dtype, error));
  return out;
}

template <class T>
AnyTensor upload(const Step& s, const Device& device) {
  const auto typed =
      std::make_unique<T[]>(s.numbers.size() + 1);  // std::vector<bool> has no elements
  for (std::size_t i = 0; i < s.numbers.size(); ++i) {
    if constexpr (std::is_same_v<T, float16>) {
      typed[i] = float16(static_cast<float>(s.numbers[i]));
    } else {
      typed[i] = static_cast<T>(s.numbers[i]);
    }
  }
  return tensor(std::span<const T>(typed.get(), s.numbers.size()), s.shape, device);
}

std::vector<AnyTensor> run_input(Run& run, const Step& s, std::span<const AnyTensor>) {
  const Device& device = run.device(s.device);
  switch (s.dtype) {
    case DType::f32:
      return one(upload<float>(s, device));
    case DType::f16:
      return one(upload<float16>(s, device));
    case DType::i32:
      return one(upload<std::int32_t>(s, device));
    case DType::u32:
      return one(upload<std::uint32_t>(s, device));
    case DType::boolean:
      return one(upload<bool>(s, device));
  }
  return {};
}

bool draw_spec(Draw& d, Step& s, std::initializer_list<DType> dtypes) {
  s.shape = d.some_shape();
  s.dtype = d.one_of(dtypes);
  s.device = d.below(d.devices());
  return true;
}

}  // namespace

void add_creation(std::vector<Operation>& to) {
  to.push_back(
      {.name = "input",
       .weight = 20,
       .draw =
           [](Draw& d, Step&) {
             d.input(d.some_shape(),
                     d.one_of({DType::f32, DType::f16, DType::i32, DType::u32, DType::boolean}),
                     d.below(d.devices()));
             return false;  // it is there already
           },
       .model =
           [](Model& m, const Step& s) {
             return std::vector{
                 constant(m, {s.shape, s.dtype}, [&](std::int64_t i) { return s.numbers[at(i)]; })};
           },
       .run = run_input});
  to.push_back({.name = "full",
                .weight = 5,
                .draw =
                    [](Draw& d, Step& s) {
                      s.numbers = {static_cast<double>(d.below(4))};
                      return draw_spec(d, s, {DType::f32, DType::f16, DType::i32, DType::u32});
                    },
                .model =
                    [](Model& m, const Step& s) {
                      return std::vector{constant(m, {s.shape, s.dtype},
                                                  [&](std::int64_t) { return s.numbers[0]; })};
                    },
                .run =
                    [](Run& run, const Step& s, auto) {
                      return one(full(s.shape, s.numbers[0], s.dtype, run.device(s.device)));
                    }});
  to.push_back({.name = "arange",
                .weight = 4,
                .draw =
                    [](Draw& d, Step& s) {
                      s.numbers = {static_cast<double>(d.below(3)),
                                   static_cast<double>(1 + d.below(2))};
                      draw_spec(d, s, {DType::f32, DType::f16, DType::i32, DType::u32});
                      s.shape = {d.below(9)};
                      return true;
                    },
                .model =
                    [](Model& m, const Step& s) {
                      return std::vector{constant(m, {s.shape, s.dtype}, [&](std::int64_t i) {
                        return s.numbers[0] + s.numbers[1] * static_cast<double>(i);
                      })};
                    },
                .run =
                    [](Run& run, const Step& s, auto) {
                      return one(arange(s.shape[0], {.start = s.numbers[0], .step = s.numbers[1]},
                                        s.dtype, run.device(s.device)));
                    }});
  to.push_back({.name = "random_uniform",
                .weight = 4,
                .draw =
                    [](Draw& d, Step& s) {
                      s.numbers = {-2, static_cast<double>(d.below(3))};
                      s.ints = {d.below(1000)};
                      return draw_spec(d, s, {DType::f32, DType::f16});
                    },
                .model =
                    [](Model& m, const Step& s) {
                      const double middle = (s.numbers[0] + s.numbers[1]) / 2;
                      return std::vector{constant(
                          m, {s.shape, s.dtype}, [&](std::int64_t) { return middle; },
                          s.numbers[1] - middle)};
                    },
                .run =
                    [](Run& run, const Step& s, auto) {
                      return one(random_uniform(s.shape, static_cast<std::uint64_t>(s.ints[0]),
                                                {s.numbers[0], s.numbers[1]}, s.dtype,
                                                run.device(s.device)));
                    }});
}

}  // namespace kiln::fuzz
