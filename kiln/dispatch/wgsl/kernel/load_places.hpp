#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/support/layout.hpp"

namespace kiln::dispatch::wgsl {

/// How loads find elements by coordinates along the axes of an operand. There may be several arrays
/// that are read for it. Steps and offsets are numbers of the launch. The text depends on them only
/// where four elements are wanted at once: along such an axis a step of 0 or 1 takes no product.
class LoadPlaces {
 public:
  /// Axes along which four elements are wanted at once.
  struct Fours {
    bool last = false;
    bool before = false;  ///< the last but one
  };
  /// `arrays` have the operand's shape. Names in the text begin with `prefix`. With `out` loads
  /// start from a matrix of the operand, whose batch broadcasts to out's: NAME_Matrix. Throws
  /// KernelError that begins with `op` if the operand has too few axes.
  LoadPlaces(std::string_view op, std::string_view prefix, std::string_view operand,
             std::vector<Layout> arrays, const Shape& shape, const Shape* out, Fours fours);

  /// Calls sink(name, number) for every number of the launch, always in one order.
  template <class Sink>
  void each_number(Sink sink) const;
  /// The type NAME_Matrix and the functions NAME_matrix and NAME_move. Empty without `out`.
  [[nodiscard]] std::string functions() const;
  /// The parameters of a load.
  [[nodiscard]] std::string parameters() const;
  /// A u32 expression of those parameters: where array i's element is, `lane` further along `axis`,
  /// which is -1 or -2.
  [[nodiscard]] std::string position(std::size_t i, int axis = -1, int lane = 0) const;
  /// Whether array i has the same element for every coordinate along `axis`.
  [[nodiscard]] bool repeats(std::size_t i, int axis) const;
  /// Whether four elements of array i along `axis` are always one aligned vec4.
  [[nodiscard]] bool is_quad(std::size_t i, int axis) const;

 private:
  [[nodiscard]] bool wanted(int axis) const;
  [[nodiscard]] std::int64_t step(std::size_t i, int axis) const;
  [[nodiscard]] std::string start(std::size_t i) const;
  [[nodiscard]] std::string steps(std::size_t i) const;
  [[nodiscard]] std::string coordinate(int axis) const;
  [[nodiscard]] std::string matrix(const std::vector<std::string>& starts) const;
  /// The axes with a coordinate of their own, outermost first, counted from the end.
  [[nodiscard]] int axes() const { return out_rank_ < 0 ? shape_.rank() : 2; }

  std::string prefix_;
  std::string operand_;
  std::vector<Layout> arrays_;
  Shape shape_;
  Shape out_;
  int out_rank_ = -1;  ///< -1: loads take all coordinates
  Fours fours_;
};

template <class Sink>
void LoadPlaces::each_number(Sink sink) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    sink(fmt::format("{}o{}", prefix_, i), arrays_[i].offset);
  for (int axis = -3; axis >= -out_rank_ && !arrays_.empty(); --axis) {
    sink(fmt::format("{}d{}", prefix_, -axis), out_[axis]);
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      sink(fmt::format("{}s{}_{}", prefix_, i, -axis), step(i, axis));
  }
  for (int axis = -axes(); axis < 0; ++axis) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (!wanted(axis) || step(i, axis) > 1)
        sink(fmt::format("{}s{}_{}", prefix_, i, -axis), step(i, axis));
    }
  }
}

}  // namespace kiln::dispatch::wgsl
