#include "kiln/support/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/support/error.hpp"

namespace kiln {

Shape::Shape(std::initializer_list<Integer> sizes) {
  for (const Integer size : sizes) push_back(size);
}

Shape::Shape(std::span<const std::int64_t> sizes) {
  for (const std::int64_t size : sizes) push_back(size);
}

void Shape::push_back(Integer given) {
  const std::int64_t size = given;
  if (rank_ == max_rank) {
    throw ShapeError(fmt::format("shape: the rank must be at most {}, got {} and another axis",
                                 max_rank, to_string(*this)));
  }
  if (size < 0) throw ShapeError(fmt::format("shape: sizes must not be negative, got {}", size));
  sizes_[static_cast<std::size_t>(rank_++)] = size;
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  if (std::ranges::find(*this, 0) != end()) return 0;
  for (const std::int64_t size : *this) {
    if (__builtin_mul_overflow(count, size, &count)) {
      throw ShapeError(
          fmt::format("shape: the number of elements of {} exceeds 2^63", to_string(*this)));
    }
  }
  return count;
}

void Shape::refuse_axis(std::int64_t axis) const {
  throw ShapeError(fmt::format("shape: axis {} is out of range for {}", axis, to_string(*this)));
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string to_string(const TensorSpec& spec) {
  return fmt::format("{} {}", to_string(spec.dtype), to_string(spec.shape));
}

Shape broadcast(std::string_view op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  Shape out;
  const int rank = std::max(a.rank(), b.rank());
  for (int axis = -rank; axis < 0; ++axis) {
    const std::int64_t x = axis >= -a.rank() ? a[axis] : 1;
    const std::int64_t y = axis >= -b.rank() ? b[axis] : 1;
    if (x != y && x != 1 && y != 1) {
      throw ShapeError(fmt::format(
          "{}: shapes must broadcast: sizes equal or 1, aligned at the last axis ({}, {})", op,
          to_string(a), to_string(b)));
    }
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

int normalize_axis(std::string_view op, Integer axis, const Shape& shape) {
  const std::int64_t given = axis;
  const std::int64_t at = given < 0 ? given + shape.rank() : given;
  if (at < 0 || at >= shape.rank()) {
    throw ShapeError(
        fmt::format("{}: axis {} is out of range for {}", op, given, to_string(shape)));
  }
  return static_cast<int>(at);
}

}  // namespace kiln
