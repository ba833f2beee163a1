#pragma once
/// The elementwise functions of the library, each with what it computes in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"

namespace kiln::test {

struct Unary {
  const char* name;
  AnyTensor (*run)(const AnyTensor&);
  double (*expected)(double);
  bool positive = false;  ///< defined above 0 only
};

inline double phi(double x) { return 0.5 * std::erfc(-x / M_SQRT2); }

inline const std::vector<Unary>& unary() {
  static const std::vector<Unary> all{
      {"neg", [](const AnyTensor& x) { return -x; }, [](double x) { return -x; }},
      {"abs", abs, [](double x) { return std::abs(x); }},
      {"exp", exp, [](double x) { return std::exp(x); }},
      {"log", log, [](double x) { return std::log(x); }, true},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, true},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, true},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", relu, [](double x) { return x <= 0 ? 0 : x; }},
      {"gelu", gelu, [](double x) { return x * phi(x); }},
      {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {"softplus", softplus,
       [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
      {"erf", erf, [](double x) { return std::erf(x); }},
      {"x + 2.5", [](const AnyTensor& x) { return x + 2.5; }, [](double x) { return x + 2.5; }},
      {"x - 2.5", [](const AnyTensor& x) { return x - 2.5; }, [](double x) { return x - 2.5; }},
      {"x * 2.5", [](const AnyTensor& x) { return x * 2.5; }, [](double x) { return x * 2.5; }},
      {"x / 2.5", [](const AnyTensor& x) { return x / 2.5; }, [](double x) { return x / 2.5; }},
      {"2.5 + x", [](const AnyTensor& x) { return 2.5 + x; }, [](double x) { return 2.5 + x; }},
      {"2.5 - x", [](const AnyTensor& x) { return 2.5 - x; }, [](double x) { return 2.5 - x; }},
      {"2.5 * x", [](const AnyTensor& x) { return 2.5 * x; }, [](double x) { return 2.5 * x; }},
      {"2.5 / x", [](const AnyTensor& x) { return 2.5 / x; }, [](double x) { return 2.5 / x; }},
      {"pow(x, 3)", [](const AnyTensor& x) { return pow(x, 3); },
       [](double x) { return std::pow(x, 3); }},
      {"pow(x, 2.5)", [](const AnyTensor& x) { return pow(x, 2.5); },
       [](double x) { return std::pow(x, 2.5); }, true},
      {"clamp", [](const AnyTensor& x) { return clamp(x, -0.25, 0.5); },
       [](double x) { return std::clamp(x, -0.25, 0.5); }},
  };
  return all;
}

struct Binary {
  const char* name;
  AnyTensor (*run)(const AnyTensor&, const AnyTensor&);
  double (*expected)(double, double);
};

inline const std::vector<Binary>& binary() {
  static const std::vector<Binary> all{
      {"add", add, [](double a, double b) { return a + b; }},
      {"sub", sub, [](double a, double b) { return a - b; }},
      {"mul", mul, [](double a, double b) { return a * b; }},
      {"div", div, [](double a, double b) { return a / b; }},
      {"pow", [](const AnyTensor& a, const AnyTensor& b) { return pow(abs(a) + 0.5, b); },
       [](double a, double b) { return std::pow(std::abs(a) + 0.5, b); }},
      {"minimum", minimum, [](double a, double b) { return std::min(a, b); }},
      {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
  };
  return all;
}

}  // namespace kiln::test
