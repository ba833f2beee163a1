#pragma once

namespace kiln {

/// One callable of several, for std::visit: `std::visit(Overload{[](int) {}, [](float) {}},
/// value)`.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

}  // namespace kiln
