#include <fmt/format.h>

#include "kiln/ops/movement/movement.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// How many axes an ellipsis among `places` stands for.
int left_over(const Shape& shape, std::initializer_list<Index> places) {
  int given = 0;
  int ellipses = 0;
  for (const Index& place : places) ++(place.kind() == Index::Kind::rest ? ellipses : given);
  if (ellipses > 1) {
    throw ShapeError(
        fmt::format("index: one ellipsis at most, got {} ({})", ellipses, to_string(shape)));
  }
  if (given > shape.rank()) {
    throw ShapeError(fmt::format("index: {} places are given for a tensor of rank {} ({})", given,
                                 shape.rank(), to_string(shape)));
  }
  return shape.rank() - given;
}

}  // namespace

AnyTensor AnyTensor::part(std::initializer_list<Index> places) const {
  const int rest = left_over(shape(), places);
  AnyTensor taken = *this;
  Shape kept;
  int axis = 0;
  for (const Index& place : places) {
    if (place.kind() == Index::Kind::rest) {
      for (const int end = axis + rest; axis < end; ++axis) kept.push_back(dim(axis));
      continue;
    }
    if (place.kind() == Index::Kind::one) {
      const std::int64_t size = dim(axis);
      const std::int64_t at = place.begin() < 0 ? place.begin() + size : place.begin();
      if (at < 0 || at >= size) {
        throw ShapeError(fmt::format("index: {} is out of range along axis {} of size {} ({})",
                                     place.begin(), axis, size, to_string(shape())));
      }
      taken = slice(taken, axis, at, at + 1);
    } else {
      if (place.kind() == Index::Kind::part)
        taken = slice(taken, axis, place.begin(), place.end(), place.step());
      kept.push_back(taken.dim(axis));
    }
    ++axis;
  }
  for (; axis < rank(); ++axis) kept.push_back(dim(axis));
  return kept.rank() == rank() ? taken : kiln::reshape(taken, kept);
}

}  // namespace kiln
