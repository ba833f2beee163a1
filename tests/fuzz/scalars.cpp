#include "fuzz/scalars.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fuzz/functions.hpp"

namespace kiln::fuzz {

double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  return dtype == DType::f16   ? static_cast<double>(static_cast<float>(float16(narrow)))
         : dtype == DType::f32 ? static_cast<double>(narrow)
                               : value;
}

double unit(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : 0x1p-24; }

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Below it numbers may be flushed to 0.
double tiny(DType dtype) { return dtype == DType::f16 ? 0x1p-14 : 0x1p-126; }
double largest_of(DType dtype) { return dtype == DType::f16 ? 65504.0 : 3.4e38; }

bool in_range(double value, DType dtype) {
  switch (dtype) {
    case DType::i32:
      return value >= -2147483648.0 && value <= 2147483647.0;
    case DType::u32:
      return value >= 0 && value <= 4294967295.0;
    default:
      return true;
  }
}

/// How many halves of a distance of neighbours a right implementation may be off, and by how much
/// besides; WGSL's own bounds, made a little wider.
struct Slack {
  double units = 1;
  double absolute = 0;
};

Slack slack_of(Fn fn, double a, double value) {
  switch (fn) {
    case Fn::div:
      return {8, 0};
    case Fn::exp:
      return {16 + 8 * std::abs(a), 0};
    case Fn::log:
      return {8, 2e-6};
    case Fn::sqrt:
    case Fn::rsqrt:
      return {8, 0};
    case Fn::tanh:
    case Fn::sigmoid:
      return {16 + 4 * std::abs(a), 2e-6};
    case Fn::erf:
      return {16, 4e-6};
    case Fn::exp2:
    case Fn::sinh:
    case Fn::cosh:
      return {32 + 8 * std::abs(a), 0};
    case Fn::expm1:
      return {64 + 16 * std::abs(a), 0};
    case Fn::log2:
    case Fn::log1p:
    case Fn::asinh:
    case Fn::acosh:
    case Fn::atanh:
      return {32, 4e-6};
    case Fn::sin:
    case Fn::cos:
    case Fn::tan:
    case Fn::asin:
    case Fn::acos:
    case Fn::atan:
    case Fn::atan2:
      return {32, 0};
    case Fn::pow:
      return {64 + 64 * std::abs(std::log2(std::abs(value) + 1e-30)), 0};
    default:
      return {1, 0};
  }
}

/// The number with how far it may be off once it is rounded to `dtype`.
std::pair<double, double> settled(DType dtype, double value, double error, Slack slack,
                                  bool rounds_right) {
  if (std::isnan(value) && error == 0) return {value, 0};
  if (!std::isfinite(value) || !std::isfinite(error)) return {0, infinity};
  if (!is_float(dtype))
    return in_range(value, dtype) && error == 0 ? std::pair(value, 0.0) : std::pair(0.0, infinity);
  if (std::abs(value) + error > 0.99 * largest_of(dtype)) return {0, infinity};
  const bool flushed = value != 0 && std::abs(value) < tiny(dtype);
  if (error == 0 && rounds_right && !flushed && rounded(value, dtype) == value) return {value, 0};
  const double u = unit(dtype);
  double off = slack.units * u * (std::abs(value) + error) + slack.absolute;
  if (dtype == DType::f16) off += slack.units * unit(DType::f32) * std::abs(value);
  return {value, error + 1.01 * off + tiny(dtype) * (dtype == DType::f16 ? 0x1p-9 : 1)};
}

}  // namespace

bool Scalars::wild(Id id) const { return std::isinf(error(id)); }

Id Scalars::push(const Node& node) {
  nodes_.push_back(node);
  return static_cast<Id>(nodes_.size() - 1);
}

Id Scalars::given(double value, DType dtype, double error) {
  return push({.dtype = dtype, .value = value, .error = error});
}

Id Scalars::anything(DType dtype) { return given(0, dtype, infinity); }

Id Scalars::leaf(Id of) {
  return push({.fn = Fn::leaf,
               .dtype = dtype(of),
               .tracked = true,
               .a = of,
               .value = value(of),
               .error = error(of)});
}

Id Scalars::make(Fn fn, DType dtype, Id a, Id b, Id c) {
  const Number n = compute(fn, dtype, a, b, c);
  const bool flows = is_float(dtype) && (tracked(a) || tracked(b) || tracked(c));
  return push({fn, dtype, flows, a, b, c, n.value, n.error});
}

Scalars::Number Scalars::compute(Fn fn, DType dtype, Id ia, Id ib, Id ic) const {
  const Number a{value(ia), error(ia)};
  const Number b = ib < 0 ? Number{} : Number{value(ib), error(ib)};
  const Number nothing{0, infinity};
  if (fn == Fn::select) {
    if (std::isinf(a.error)) return nothing;
    return a.value != 0 ? b : Number{value(ic), error(ic)};
  }
  if (std::isinf(a.error) || std::isinf(b.error)) return nothing;
  const double off = a.error + b.error;
  const bool any_nan = std::isnan(a.value) || std::isnan(b.value);
  const auto number = [&](double v, double e, bool rounds_right = false) {
    const auto [value, error] = settled(dtype, any_nan ? not_a_number : v, any_nan ? 0 : e,
                                        slack_of(fn, a.value, v), rounds_right);
    return Number{value, error};
  };
  // Within `off` of a jump either side may be taken.
  const auto truth = [&](bool holds, double distance) {
    if (!any_nan && off > 0 && std::abs(distance) <= off) return nothing;
    return Number{holds ? 1.0 : 0.0, 0};
  };
  if (const auto f = smooth(fn)) {
    if (!any_nan && !(a.value - a.error > f->low && a.value + a.error < f->high)) return nothing;
    // Beyond a tenth of a turn, or a factor, nothing is left of a number.
    return a.error > 0.1 ? nothing : number(f->value(a.value), spread(f->value, a.value, a.error));
  }
  switch (fn) {
    case Fn::add:
      return number(a.value + b.value, off, true);
    case Fn::sub:
      return number(a.value - b.value, off, true);
    case Fn::mul:
      return number(a.value * b.value,
                    std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error,
                    true);
    case Fn::div: {
      if (!is_float(dtype)) return {integer(fn, dtype, a.value, b.value), 0};
      const double low = std::abs(b.value) - b.error;
      if (!any_nan && !(low > 0)) return nothing;
      const double v = a.value / b.value;
      return number(v, (a.error + std::abs(v) * b.error) / low);
    }
    case Fn::neg:
      return number(-a.value, a.error, true);
    case Fn::abs:
      return number(std::abs(a.value), a.error, true);
    case Fn::exp:
      return number(std::exp(a.value), std::exp(a.value) * std::expm1(a.error));
    case Fn::log:
    case Fn::sqrt:
    case Fn::rsqrt: {
      const double low = a.value - a.error;
      if (!any_nan && !(low > (fn == Fn::log ? 1e-30 : 1e-12))) {
        return fn == Fn::sqrt && a.value == 0 && a.error == 0 ? Number{} : nothing;
      }
      if (fn == Fn::log) return number(std::log(a.value), a.error / low);
      const double root = std::sqrt(a.value);
      return fn == Fn::sqrt ? number(root, a.error / (2 * std::sqrt(low)))
                            : number(1 / root, a.error / (2 * low * std::sqrt(low)));
    }
    case Fn::tanh:
      return number(std::tanh(a.value), a.error);
    case Fn::sigmoid:
      return number(1 / (1 + std::exp(-a.value)), a.error / 4);
    case Fn::relu:
      return number(std::max(a.value, 0.0), a.error, true);
    case Fn::erf:
      return number(std::erf(a.value), 1.13 * a.error);
    case Fn::atan2: {
      const double far = std::hypot(a.value, b.value) - off;
      if (!any_nan && (far < 1e-3 || (b.value - b.error <= 0 && std::abs(a.value) <= a.error)))
        return nothing;  // at the pole, or on the cut
      return number(std::atan2(a.value, b.value), off / far);
    }
    case Fn::floor:
    case Fn::ceil:
    case Fn::round:
    case Fn::trunc: {
      const double v = whole(fn, a.value);
      if (whole(fn, a.value - a.error) != whole(fn, a.value + a.error) && !any_nan) return nothing;
      return number(v, 0, true);
    }
    case Fn::sign:
      if (!any_nan && off > 0 && std::abs(a.value) <= off) return nothing;
      return number(static_cast<double>((a.value > 0) - (a.value < 0)), 0, true);
    case Fn::is_inf:
      return {std::isinf(a.value) ? 1.0 : 0.0, 0};
    case Fn::floor_div:
    case Fn::mod:
    case Fn::shift_left:
    case Fn::shift_right:
    case Fn::bit_and:
    case Fn::bit_or:
    case Fn::bit_xor:
    case Fn::bit_not:
      return {integer(fn, dtype, a.value, b.value), 0};
    case Fn::pow: {
      if (any_nan || a.value - a.error < 1e-3) return nothing;
      const double v = std::pow(a.value, b.value);
      const double slope = std::abs(b.value) * a.error / (a.value - a.error) +
                           std::abs(std::log(a.value)) * b.error + a.error * b.error;
      return slope > 0.5 ? nothing : number(v, 2 * v * slope);
    }
    case Fn::min:
      return number(std::min(a.value, b.value), std::max(a.error, b.error), true);
    case Fn::max:
      return number(std::max(a.value, b.value), std::max(a.error, b.error), true);
    case Fn::is_nan:
      return {std::isnan(a.value) ? 1.0 : 0.0, 0};
    case Fn::equal:
      return truth(a.value == b.value, a.value - b.value);
    case Fn::less:
      return truth(a.value < b.value, a.value - b.value);
    case Fn::less_equal:
      return truth(a.value <= b.value, a.value - b.value);
    case Fn::logical_not:
      return {a.value == 0 ? 1.0 : 0.0, 0};
    case Fn::logical_and:
      return {a.value != 0 && b.value != 0 ? 1.0 : 0.0, 0};
    case Fn::logical_or:
      return {a.value != 0 || b.value != 0 ? 1.0 : 0.0, 0};
    case Fn::cast: {
      if (is_float(dtype)) return number(a.value, a.error, true);
      if (any_nan) return nothing;
      if (dtype == DType::boolean) return truth(a.value != 0, a.value);
      const double whole = std::trunc(a.value);
      if (std::trunc(a.value - a.error) != whole || std::trunc(a.value + a.error) != whole)
        return nothing;
      return in_range(whole, dtype) ? Number{whole, 0} : nothing;
    }
    default:
      return nothing;
  }
}

Scalars::Number Scalars::added(DType dtype, DType inside, std::span<const Id> of) const {
  double total = 0;
  double size = 0;
  double error = 0;
  double grain = infinity;  // every term is a multiple of it
  for (const Id id : of) {
    const double v = value(id);
    total += v;
    size += std::abs(v);
    error += this->error(id);
    int exponent = 0;
    if (v != 0 && std::isfinite(v)) {
      double mantissa = std::frexp(v, &exponent);
      int bits = 0;
      while (mantissa != std::trunc(mantissa) && bits < 60) {
        mantissa *= 2;
        ++bits;
      }
      grain = std::min(grain, std::ldexp(1.0, exponent - bits));
    }
  }
  if (std::isnan(total) && error == 0) return {total, 0};
  const bool exact =
      error == 0 && (size == 0 || (size / grain <= 1 / unit(inside) && size >= tiny(inside)));
  if (!exact && is_float(dtype)) {
    const auto terms = static_cast<double>(of.size());
    error += 1.01 * terms * unit(inside) * (size + error) + terms * tiny(inside) * 0x1p-9;
  }
  const auto [v, e] = settled(dtype, total, error, {}, true);
  return {v, e};
}

Id Scalars::push_many(Fn fn, DType dtype, std::span<const Id> of, Number number) {
  const std::vector<Id> copy(of.begin(), of.end());
  const auto begin = static_cast<Id>(many_.size());
  many_.insert(many_.end(), copy.begin(), copy.end());
  const bool flows =
      is_float(dtype) && std::ranges::any_of(copy, [&](Id id) { return tracked(id); });
  return push(
      {fn, dtype, flows, begin, static_cast<Id>(copy.size()), -1, number.value, number.error});
}

Id Scalars::sum(DType dtype, std::span<const Id> of) {
  return push_many(Fn::sum, dtype, of, added(dtype, DType::f32, of));
}

Id Scalars::extreme(Fn which, DType dtype, std::span<const Id> of) {
  Number n{value(of[0]), error(of[0])};
  for (const Id id : of.subspan(1)) {
    const double v = value(id);
    if (std::isnan(v) || std::isnan(n.value)) {
      n.value = not_a_number;
    } else {
      n.value = which == Fn::largest ? std::max(n.value, v) : std::min(n.value, v);
    }
    n.error = std::max(n.error, error(id));
  }
  if (std::isinf(n.error)) n.value = 0;
  if (std::isnan(n.value)) n.error = 0;
  return push_many(which, dtype, of, n);
}

Id Scalars::place_of_extreme(Fn which, std::span<const Id> of) {
  std::size_t best = 0;
  const double sign = which == Fn::largest ? 1 : -1;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (wild(of[i])) return anything(DType::i32);
    if (std::isnan(value(of[best]))) continue;
    if (std::isnan(value(of[i])) || sign * value(of[i]) > sign * value(of[best])) best = i;
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double off = error(of[i]) + error(of[best]);
    if (i != best && off > 0 && std::abs(value(of[i]) - value(of[best])) <= off)
      return anything(DType::i32);
  }
  return given(static_cast<double>(best), DType::i32);
}

}  // namespace kiln::fuzz
