// Operations of one element per place.
#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

using Unary = AnyTensor (*)(const AnyTensor&);
using Binary = AnyTensor (*)(const AnyTensor&, const AnyTensor&);
using Rule = std::function<Id(Scalars&, DType, const std::vector<Id>&)>;

Rule of(Fn fn) {
  return [fn](Scalars& s, DType d, const std::vector<Id>& x) {
    return s.make(fn, d, x[0], x.size() > 1 ? x[1] : -1);
  };
}

std::function<std::vector<Array>(Model&, const Step&)> model_of(Rule rule, bool truth = false) {
  return [rule = std::move(rule), truth](Model& m, const Step& s) {
    const DType dtype = truth ? DType::boolean : m.at(s.in[0]).spec.dtype;
    return std::vector{elementwise(
        m, s.in, dtype, [&](const std::vector<Id>& x) { return rule(m.scalars(), dtype, x); })};
  };
}

Operation unary(std::string name, int set, Unary f, Rule rule, int weight = 8) {
  return {.name = std::move(name),
          .weight = weight,
          .draw = draw_one(set),
          .model = model_of(std::move(rule)),
          .run = [f](Run&, const Step&, auto in) { return one(f(in[0])); }};
}

bool draw_two(Draw& d, Step& s, int set) {
  const int a = d.pick([&](const Array& x) { return takes(set, x.spec.dtype); });
  if (a < 0) return false;
  const int b = d.chance(5) ? a : d.pick_partner(a, d.at(a).spec.dtype);
  s.in = d.chance(50) ? std::vector{a, b} : std::vector{b, a};
  return true;
}

Operation binary(std::string name, int set, Binary f, Rule rule, bool truth = false,
                 int weight = 12) {
  return {.name = std::move(name),
          .weight = weight,
          .draw = [set](Draw& d, Step& s) { return draw_two(d, s, set); },
          .model = model_of(std::move(rule), truth),
          .run = [f](Run&, const Step&, auto in) { return one(f(in[0], in[1])); }};
}

Operation flat(Operation op) {
  op.flat = true;
  return op;
}

/// A scalar operand that every dtype has.
Operation with_scalar(std::string name, int set, std::vector<double> choices,
                      AnyTensor (*f)(const AnyTensor&, Number), Rule rule, bool truth = false) {
  return {.name = std::move(name),
          .weight = 6,
          .draw =
              [=](Draw& d, Step& s) {
                if (!draw_one(set)(d, s)) return false;
                std::vector<double> fitting;
                const DType dtype = d.at(s.in[0]).spec.dtype;
                for (const double c : choices) {
                  if (is_float(dtype) || (c == std::trunc(c) && (c >= 0 || dtype == DType::i32)))
                    fitting.push_back(c);
                }
                s.numbers = {fitting[at(d.below(static_cast<int>(fitting.size())))]};
                return true;
              },
          .model =
              [=](Model& m, const Step& s) {
                const DType own = m.at(s.in[0]).spec.dtype;
                const DType dtype = truth ? DType::boolean : own;
                return std::vector{elementwise(m, s.in, dtype, [&](const std::vector<Id>& x) {
                  const Id number = m.scalars().given(s.numbers[0], own);
                  return rule(m.scalars(), dtype, {x[0], number});
                })};
              },
          .run = [f](Run&, const Step& s, auto in) { return one(f(in[0], s.numbers[0])); }};
}

Rule swapped(Fn fn) {
  return [fn](Scalars& s, DType d, const std::vector<Id>& x) { return s.make(fn, d, x[1], x[0]); };
}

Id gelu_of(Scalars& s, DType d, const std::vector<Id>& x) {
  // One body: computed in f32, rounded at its end.
  const DType in = DType::f32;
  const Id wide = s.make(Fn::cast, in, x[0]);
  const Id scaled = s.make(Fn::mul, in, wide, s.given(0.70710678118654752, in, 1e-7));
  const Id rest = s.make(Fn::add, in, s.given(1, in), s.make(Fn::erf, in, scaled));
  return s.make(Fn::cast, d,
                s.make(Fn::mul, in, s.make(Fn::mul, in, wide, s.given(0.5, in)), rest));
}

Id silu_of(Scalars& s, DType d, const std::vector<Id>& x) {
  const Id wide = s.make(Fn::cast, DType::f32, x[0]);
  return s.make(Fn::cast, d,
                s.make(Fn::mul, DType::f32, wide, s.make(Fn::sigmoid, DType::f32, wide)));
}

Id relu_backward_of(Scalars& s, DType d, const std::vector<Id>& x) {
  const Id positive = s.make(Fn::less, DType::boolean, s.given(0, d), x[0]);
  const Id taken =
      s.make(Fn::logical_or, DType::boolean, positive, s.make(Fn::is_nan, DType::boolean, x[0]));
  return s.make(Fn::select, d, taken, x[1], s.given(0, d));
}

Operation clamp_op() {
  return {.name = "clamp",
          .weight = 6,
          .draw =
              [](Draw& d, Step& s) {
                s.numbers = {-1.0 - d.below(3), 1.0 + d.below(3)};
                return draw_one(floats)(d, s);
              },
          .model =
              [](Model& m, const Step& s) {
                const DType dtype = m.at(s.in[0]).spec.dtype;
                Scalars& t = m.scalars();
                return std::vector{elementwise(m, s.in, dtype, [&](const std::vector<Id>& x) {
                  const Id low = t.given(s.numbers[0], dtype);
                  const Id high = t.given(s.numbers[1], dtype);
                  const Id upper = t.make(Fn::select, dtype,
                                          t.make(Fn::less, DType::boolean, high, x[0]), high, x[0]);
                  const Id both = t.make(Fn::select, dtype,
                                         t.make(Fn::less, DType::boolean, x[0], low), low, upper);
                  return both;
                })};
              },
          .run = [](Run&, const Step& s,
                    auto in) { return one(clamp(in[0], s.numbers[0], s.numbers[1])); }};
}

Operation where_op() {
  return {
      .name = "where",
      .weight = 14,
      .draw =
          [](Draw& d, Step& s) {
            if (!draw_two(d, s, all_dtypes)) return false;
            const int condition = d.pick_partner(s.in[0], DType::boolean);
            s.in.insert(s.in.begin(), condition);
            const Shape two = broadcast("fuzz", d.at(s.in[1]).spec.shape, d.at(s.in[2]).spec.shape);
            try {
              return broadcast("fuzz", two, d.at(condition).spec.shape).elements() <= most_elements;
            } catch (const ShapeError&) {
              return false;  // it goes with one of the two only
            }
          },
      .model =
          [](Model& m, const Step& s) {
            const DType dtype = m.at(s.in[1]).spec.dtype;
            return std::vector{elementwise(m, s.in, dtype, [&](const std::vector<Id>& x) {
              return m.scalars().make(Fn::select, dtype, x[0], x[1], x[2]);
            })};
          },
      .run = [](Run&, const Step&, auto in) { return one(where(in[0], in[1], in[2])); }};
}

Operation cast_op() {
  return {.name = "cast",
          .weight = 20,
          .draw =
              [](Draw& d, Step& s) {
                s.dtype = d.one_of({DType::f32, DType::f32, DType::f16, DType::f16, DType::i32,
                                    DType::u32, DType::boolean});
                s.ints = {static_cast<std::int64_t>(s.dtype)};
                return draw_one(all_dtypes)(d, s);
              },
          .model =
              [](Model& m, const Step& s) {
                return std::vector{elementwise(m, s.in, s.dtype, [&](const std::vector<Id>& x) {
                  return m.scalars().dtype(x[0]) == s.dtype
                             ? x[0]
                             : m.scalars().make(Fn::cast, s.dtype, x[0]);
                })};
              },
          .run = [](Run&, const Step& s, auto in) { return one(cast(in[0], s.dtype)); }};
}

}  // namespace

void add_elementwise(std::vector<Operation>& to) {
  const auto add = [&](Operation op) { to.push_back(std::move(op)); };
  add(binary("add", numbers, kiln::add, of(Fn::add), false, 25));
  add(binary("sub", numbers, kiln::sub, of(Fn::sub), false, 15));
  add(binary("mul", numbers, kiln::mul, of(Fn::mul), false, 25));
  add(binary("div", numbers, kiln::div, of(Fn::div)));
  add(binary("minimum", numbers, minimum, of(Fn::min)));
  add(binary("maximum", numbers, maximum, of(Fn::max)));
  add(binary("pow", floats, static_cast<Binary>(pow), of(Fn::pow), false, 4));
  add(flat(binary("relu_backward", floats, relu_backward, relu_backward_of, false, 4)));
  add(unary("neg", floats | integers, neg, of(Fn::neg)));
  to.back().draw = [](Draw& d, Step& s) {
    return draw_one(numbers)(d, s) && d.at(s.in[0]).spec.dtype != DType::u32;
  };
  add(unary("abs", numbers, abs, of(Fn::abs)));
  add(unary("exp", floats, exp, of(Fn::exp)));
  add(unary("log", floats, log, of(Fn::log)));
  add(unary("sqrt", floats, sqrt, of(Fn::sqrt)));
  add(unary("rsqrt", floats, rsqrt, of(Fn::rsqrt)));
  add(unary("tanh", floats, tanh, of(Fn::tanh)));
  add(unary("sigmoid", floats, sigmoid, of(Fn::sigmoid)));
  add(unary("relu", numbers, relu, of(Fn::relu)));
  add(unary("erf", floats, erf, of(Fn::erf)));
  add(unary("sin", floats, sin, of(Fn::sin), 3));
  add(unary("cos", floats, cos, of(Fn::cos), 3));
  add(unary("tan", floats, tan, of(Fn::tan), 3));
  add(unary("asin", floats, asin, of(Fn::asin), 3));
  add(unary("acos", floats, acos, of(Fn::acos), 3));
  add(unary("atan", floats, atan, of(Fn::atan), 3));
  add(unary("sinh", floats, sinh, of(Fn::sinh), 3));
  add(unary("cosh", floats, cosh, of(Fn::cosh), 3));
  add(unary("asinh", floats, asinh, of(Fn::asinh), 3));
  add(unary("acosh", floats, acosh, of(Fn::acosh), 3));
  add(unary("atanh", floats, atanh, of(Fn::atanh), 3));
  add(unary("exp2", floats, exp2, of(Fn::exp2), 3));
  add(unary("log2", floats, log2, of(Fn::log2), 3));
  add(unary("log1p", floats, log1p, of(Fn::log1p), 3));
  add(unary("expm1", floats, expm1, of(Fn::expm1), 3));
  add(flat(unary("floor", floats, floor, of(Fn::floor), 3)));
  add(flat(unary("ceil", floats, ceil, of(Fn::ceil), 3)));
  add(flat(unary("round", floats, round, of(Fn::round), 3)));
  add(flat(unary("trunc", floats, trunc, of(Fn::trunc), 3)));
  add(flat(unary("sign", numbers, sign, of(Fn::sign), 3)));
  add(unary("bit_not", integers, bit_not, of(Fn::bit_not), 3));
  add(binary("atan2", floats, static_cast<Binary>(atan2), of(Fn::atan2), false, 3));
  add(binary("floor_div", integers, static_cast<Binary>(floor_div), of(Fn::floor_div), false, 3));
  add(binary("mod", integers, static_cast<Binary>(mod), of(Fn::mod), false, 3));
  add(binary("left_shift", integers, static_cast<Binary>(left_shift), of(Fn::shift_left), false,
             3));
  add(binary("right_shift", integers, static_cast<Binary>(right_shift), of(Fn::shift_right), false,
             3));
  add(binary("bit_and", integers, static_cast<Binary>(bit_and), of(Fn::bit_and), false, 3));
  add(binary("bit_or", integers, static_cast<Binary>(bit_or), of(Fn::bit_or), false, 3));
  add(binary("bit_xor", integers, static_cast<Binary>(bit_xor), of(Fn::bit_xor), false, 3));
  add(unary("gelu", floats, gelu, gelu_of));
  add(unary("silu", floats, silu, silu_of));
  const std::vector<double> some{-2, -1, -0.5, 0.5, 1, 2, 3};
  using Scaled = AnyTensor (*)(const AnyTensor&, Number);
  add(with_scalar("add_scalar", numbers, some, static_cast<Scaled>(kiln::operator+), of(Fn::add)));
  add(with_scalar("sub_scalar", numbers, some, static_cast<Scaled>(kiln::operator-), of(Fn::sub)));
  add(with_scalar("mul_scalar", numbers, some, static_cast<Scaled>(kiln::operator*), of(Fn::mul)));
  add(with_scalar("div_scalar", numbers, some, static_cast<Scaled>(kiln::operator/), of(Fn::div)));
  add(with_scalar(
      "scalar_sub", numbers, some, [](const AnyTensor& x, Number a) { return a - x; },
      swapped(Fn::sub)));
  add(with_scalar(
      "scalar_div", numbers, some, [](const AnyTensor& x, Number a) { return a / x; },
      swapped(Fn::div)));
  add(with_scalar("floor_div_scalar", integers, {-3, 0, 2, 3}, static_cast<Scaled>(floor_div),
                  of(Fn::floor_div)));
  add(with_scalar("mod_scalar", integers, {-3, 0, 2, 3}, static_cast<Scaled>(mod), of(Fn::mod)));
  add(with_scalar("right_shift_scalar", integers, {1, 3, 40}, static_cast<Scaled>(right_shift),
                  of(Fn::shift_right)));
  add(with_scalar("pow_scalar", floats, {0.5, 1, 2, 3}, static_cast<Scaled>(pow), of(Fn::pow)));
  add(with_scalar("equal_scalar", numbers, some, static_cast<Scaled>(equal), of(Fn::equal), true));
  add(with_scalar("less_scalar", numbers, some, static_cast<Scaled>(less), of(Fn::less), true));
  add(with_scalar("greater_scalar", numbers, some, static_cast<Scaled>(greater), swapped(Fn::less),
                  true));
  add(binary("equal", all_dtypes, static_cast<Binary>(equal), of(Fn::equal), true, 4));
  add(binary(
      "not_equal", all_dtypes, not_equal,
      [](Scalars& s, DType, const std::vector<Id>& x) {
        return s.make(Fn::logical_not, DType::boolean,
                      s.make(Fn::equal, DType::boolean, x[0], x[1]));
      },
      true, 4));
  add(binary("less", numbers, static_cast<Binary>(less), of(Fn::less), true, 5));
  add(binary("less_equal", numbers, less_equal, of(Fn::less_equal), true, 5));
  add(binary("greater", numbers, static_cast<Binary>(greater), swapped(Fn::less), true, 5));
  add(binary("greater_equal", numbers, greater_equal, swapped(Fn::less_equal), true, 5));
  add(binary("logical_and", booleans, logical_and, of(Fn::logical_and), true, 5));
  add(binary("logical_or", booleans, logical_or, of(Fn::logical_or), true, 5));
  add({.name = "logical_not",
       .weight = 5,
       .draw = draw_one(booleans),
       .model = model_of(of(Fn::logical_not), true),
       .run = [](Run&, const Step&, auto in) { return one(logical_not(in[0])); }});
  add({.name = "is_nan",
       .weight = 4,
       .draw = draw_one(floats),
       .model = model_of(of(Fn::is_nan), true),
       .run = [](Run&, const Step&, auto in) { return one(is_nan(in[0])); }});
  add({.name = "is_inf",
       .weight = 4,
       .draw = draw_one(floats),
       .model = model_of(of(Fn::is_inf), true),
       .run = [](Run&, const Step&, auto in) { return one(is_inf(in[0])); }});
  add(clamp_op());
  add(where_op());
  add(cast_op());
}

}  // namespace kiln::fuzz
