#include "fuzz/functions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kiln::fuzz {

std::optional<Smooth> smooth(Fn fn) {
  switch (fn) {
    case Fn::sin:
      return Smooth{std::sin, std::cos};
    case Fn::cos:
      return Smooth{std::cos, [](double x) { return -std::sin(x); }};
    case Fn::tan:
      return Smooth{std::tan, [](double x) { return 1 / (std::cos(x) * std::cos(x)); }};
    case Fn::asin:
      return Smooth{std::asin, [](double x) { return 1 / std::sqrt(1 - x * x); }, -0.99, 0.99};
    case Fn::acos:
      return Smooth{std::acos, [](double x) { return -1 / std::sqrt(1 - x * x); }, -0.99, 0.99};
    case Fn::atan:
      return Smooth{std::atan, [](double x) { return 1 / (1 + x * x); }};
    case Fn::sinh:
      return Smooth{std::sinh, std::cosh};
    case Fn::cosh:
      return Smooth{std::cosh, std::sinh};
    case Fn::asinh:
      return Smooth{std::asinh, [](double x) { return 1 / std::sqrt(1 + x * x); }};
    case Fn::acosh:
      return Smooth{std::acosh, [](double x) { return 1 / std::sqrt(x * x - 1); }, 1.01};
    case Fn::atanh:
      return Smooth{std::atanh, [](double x) { return 1 / (1 - x * x); }, -0.99, 0.99};
    case Fn::exp2:
      return Smooth{std::exp2, [](double x) { return 0.69314718055994531 * std::exp2(x); }};
    case Fn::log2:
      return Smooth{std::log2, [](double x) { return 1.4426950408889634 / x; }, 1e-30};
    case Fn::log1p:
      return Smooth{std::log1p, [](double x) { return 1 / (1 + x); }, -0.99};
    case Fn::expm1:
      return Smooth{std::expm1, std::exp};
    default:
      return std::nullopt;
  }
}

double spread(double (*f)(double), double x, double error) {
  if (error == 0) return 0;
  return 2 * std::max(std::abs(f(x + error) - f(x)), std::abs(f(x - error) - f(x)));
}

double whole(Fn fn, double x) {
  switch (fn) {
    case Fn::floor:
      return std::floor(x);
    case Fn::ceil:
      return std::ceil(x);
    case Fn::round:
      return std::nearbyint(x);
    default:
      return std::trunc(x);
  }
}

double integer(Fn fn, DType dtype, double x, double y) {
  const auto a = static_cast<std::int64_t>(x);
  const auto b = static_cast<std::int64_t>(y);
  const bool shifts = b >= 0 && b <= 31;
  const std::int64_t down = b == 0 ? a : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  const auto low = [&]() -> std::int64_t {
    switch (fn) {
      case Fn::div:
        return b == 0 ? a : a / b;
      case Fn::floor_div:
        return down;
      case Fn::mod:
        return b == 0 ? 0 : a - down * b;
      case Fn::shift_left:
        return shifts ? a * (std::int64_t{1} << b) : 0;
      case Fn::shift_right:
        return a >> (shifts ? b : 33);
      case Fn::bit_and:
        return a & b;
      case Fn::bit_or:
        return a | b;
      case Fn::bit_xor:
        return a ^ b;
      default:
        return ~a;
    }
  }();
  return dtype == DType::i32 ? static_cast<double>(static_cast<std::int32_t>(low))
                             : static_cast<double>(static_cast<std::uint32_t>(low));
}

}  // namespace kiln::fuzz
