#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "kiln/support/argument.hpp"
#include "kiln/support/dtype.hpp"

namespace kiln {

inline constexpr int max_rank = 8;

/// The sizes of a tensor, outermost first. Negative axes count from the end. A shape never
/// allocates.
///
///     Shape s{2, 3, 4};
///     s[-1];   // [4]
///     s.elements();   // [24]
class Shape {
 public:
  Shape() = default;
  /// From sizes. Throws ShapeError for a negative size or a rank above 8.
  ///
  ///     Shape{2, -1};   // throws ShapeError
  Shape(std::initializer_list<Integer> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  /// The number of axes.
  ///
  ///     Shape{2, 3}.rank();   // [2]
  [[nodiscard]] int rank() const { return rank_; }
  /// The size along `axis`. Throws ShapeError for an axis outside of [-rank, rank).
  ///
  ///     Shape{2, 3}[-1];   // [3]
  ///     Shape{2, 3}[2];   // throws ShapeError
  std::int64_t operator[](Integer axis) const { return sizes_[index(axis)]; }
  std::int64_t& operator[](Integer axis) { return sizes_[index(axis)]; }
  /// Adds an axis at the end. Throws ShapeError as the constructor does.
  ///
  ///     Shape s{2};
  ///     s.push_back(3);
  ///     s;   // [2, 3]
  void push_back(Integer size);
  /// The product of the sizes, 1 for rank 0. Throws ShapeError past 2^63.
  [[nodiscard]] std::int64_t elements() const;

  /// The sizes as a range.
  ///
  ///     const Shape s{2, 3};
  ///     std::vector<std::int64_t>(s.begin(), s.end()).size() == s.size();   // [true]
  [[nodiscard]] const std::int64_t* begin() const { return sizes_.data(); }
  [[nodiscard]] const std::int64_t* end() const { return sizes_.data() + rank_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rank_); }
  bool operator==(const Shape&) const = default;

 private:
  [[nodiscard]] std::size_t index(std::int64_t axis) const {
    const std::int64_t at = axis < 0 ? axis + rank_ : axis;
    if (at < 0 || at >= rank_) refuse_axis(axis);
    return static_cast<std::size_t>(at);
  }
  [[noreturn]] void refuse_axis(std::int64_t axis) const;

  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

/// The sizes as text.
///
///     to_string(Shape{2, 3, 4});   // [2, 3, 4]
std::string to_string(const Shape& shape);

/// The shape of an elementwise result, by NumPy's rules: aligned at the last axis, sizes equal
/// or 1. Throws ShapeError that begins with `op` and shows both shapes.
///
///     broadcast("my_op", {4, 1, 3}, {2, 1});   // [4, 2, 3]
Shape broadcast(std::string_view op, const Shape& a, const Shape& b);

/// `axis` as a number in [0, rank). Throws ShapeError that begins with `op`.
///
///     normalize_axis("my_op", -1, {2, 3, 4});   // [2]
int normalize_axis(std::string_view op, Integer axis, const Shape& shape);

/// Shape and dtype: what an `output` rule promises and what a result must have.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::f32;
  bool operator==(const TensorSpec&) const = default;
};

/// Dtype and shape as text.
///
///     const std::string text = to_string(TensorSpec{{2, 3, 4}, DType::f32});   // f32 [2, 3, 4]
std::string to_string(const TensorSpec& spec);

}  // namespace kiln
