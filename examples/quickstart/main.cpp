#include <iostream>

#include "kiln/kiln.hpp"

using namespace kiln;

struct Mish {  // an operation: its GPU kernel, host loop and gradient follow from this one function
  static constexpr std::string_view name = "mish";
  static Expr body(Expr x) { return x * tanh(softplus(x)); }
};
AnyTensor mish(const AnyTensor& x) { return apply(Mish{}, x); }

int main() {
  const Device device = default_device().autodiff();  // a GPU, or the host where there is none
  const AnyTensor x = tensor({-1.0, 0.0, 2.0}, device).require_grad();
  const AnyTensor y = mish(x);
  std::cout << y << "\n" << sum(y).backward().of(x) << "\n";
}
