#pragma once
/// For the tests of operations: everything of the stages below, and tensors of views.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/ops/movement/movement.hpp"

namespace kiln::test {

/// The same values as `x` in another order in memory: by columns, or every second element of a
/// larger buffer.
inline std::vector<AnyTensor> other_views(const AnyTensor& x) {
  std::vector<AnyTensor> views;
  if (x.rank() >= 2) {
    const AnyTensor columns =
        transpose(make(values(transpose(x)), transpose(x).shape(), x.dtype()));
    views.push_back(columns);
  }
  if (x.rank() >= 1) {
    const std::vector<float> elements = values(x);
    std::vector<float> spread;
    const std::int64_t inner = x.dim(-1);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (static_cast<std::int64_t>(i) % std::max<std::int64_t>(inner, 1) == 0)
        spread.push_back(-77);
      spread.push_back(elements[i]);
      spread.push_back(77);
    }
    Shape wide = x.shape();
    wide[-1] = 2 * inner + 1;
    if (elements.empty()) spread.resize(static_cast<std::size_t>(wide.elements()));
    views.push_back(slice(make(spread, wide, x.dtype()), -1, 1, 2 * inner + 1, 2));
  }
  return views;
}

}  // namespace kiln::test
