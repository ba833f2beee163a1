#include "kiln/dispatch/wgsl/kernel/load_places.hpp"

#include <fmt/ranges.h>

#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {

LoadPlaces::LoadPlaces(std::string_view op, std::string_view prefix, std::string_view operand,
                       std::vector<Layout> arrays, const Shape& shape, const Shape* out,
                       Fours fours)
    : prefix_(prefix), operand_(operand), arrays_(std::move(arrays)), shape_(shape), fours_(fours) {
  const int needed = out != nullptr || fours.before ? 2 : fours.last ? 1 : 0;
  if (shape.rank() < needed) {
    throw KernelError(
        fmt::format("{}: the kernel loads '{}' by {} coordinates, but its shape is {}", op, operand,
                    needed, to_string(shape)));
  }
  if (out == nullptr) return;
  out_ = *out;
  out_rank_ = out->rank();
}

bool LoadPlaces::wanted(int axis) const {
  return axis == -1 ? fours_.last : axis == -2 && fours_.before;
}

/// A step that the text may count on: that along an axis of one element does not matter.
std::int64_t LoadPlaces::step(std::size_t i, int axis) const {
  if (axis < -shape_.rank()) return 0;
  if (shape_[axis] == 1) return wanted(axis) ? 1 : 0;
  return arrays_[i].stride(axis);
}

bool LoadPlaces::repeats(std::size_t i, int axis) const { return step(i, axis) == 0; }

bool LoadPlaces::is_quad(std::size_t i, int axis) const {
  const Layout& layout = arrays_[i];
  if (!wanted(axis) || shape_[axis] % 4 != 0 || layout.stride(axis) != 1 || layout.offset % 4 != 0)
    return false;
  for (int other = -shape_.rank(); other < 0; ++other) {
    if (other != axis && shape_[other] != 1 && layout.stride(other) % 4 != 0) return false;
  }
  return true;
}

std::string LoadPlaces::coordinate(int axis) const {
  if (out_rank_ < 0) return fmt::format("kiln_c{}", shape_.rank() + axis);
  return axis == -1 ? "kiln_col" : "kiln_row";
}

std::string LoadPlaces::start(std::size_t i) const {
  if (out_rank_ < 0) return fmt::format("params.{}o{}", prefix_, i);
  return arrays_.size() == 1 ? "kiln_at" : fmt::format("kiln_at.a{}", i);
}

/// What the coordinates add to the start of array i.
std::string LoadPlaces::steps(std::size_t i) const {
  std::string text;
  for (int axis = -axes(); axis < 0; ++axis) {
    const bool fixed = wanted(axis) && step(i, axis) <= 1;
    if (fixed && step(i, axis) == 0) continue;
    text += fmt::format(" + {}", coordinate(axis));
    if (!fixed) text += fmt::format(" * params.{}s{}_{}", prefix_, i, -axis);
  }
  return text;
}

std::string LoadPlaces::position(std::size_t i, int axis, int lane) const {
  std::string text = start(i) + steps(i);
  if (lane == 0 || repeats(i, axis)) return text;
  text += fmt::format(" + {}u", lane);
  if (step(i, axis) > 1) text += fmt::format(" * params.{}s{}_{}", prefix_, i, -axis);
  return text;
}

std::string LoadPlaces::parameters() const {
  std::vector<std::string> all;
  if (out_rank_ >= 0) all.push_back(fmt::format("kiln_at: {}_Matrix", operand_));
  for (int axis = -axes(); axis < 0; ++axis)
    all.push_back(fmt::format("{}: u32", coordinate(axis)));
  return fmt::format("{}", fmt::join(all, ", "));
}

/// A NAME_Matrix of a start for each array.
std::string LoadPlaces::matrix(const std::vector<std::string>& starts) const {
  if (starts.empty()) return "0u";
  if (starts.size() == 1) return starts[0];
  return fmt::format("{}_Matrix({})", operand_, fmt::join(starts, ", "));
}

std::string LoadPlaces::functions() const {
  if (out_rank_ < 0) return {};
  std::string text;
  std::string members;
  std::vector<std::string> starts;
  std::vector<std::string> moved;
  std::string body;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    members += fmt::format("a{}: u32, ", i);
    starts.push_back(fmt::format("kiln_p{}", i));
    moved.push_back(start(i) + steps(i));
    body += fmt::format("  var kiln_p{0} = params.{1}o{0};\n", i, prefix_);
  }
  text += arrays_.size() < 2 ? fmt::format("alias {}_Matrix = u32;\n", operand_)
                             : fmt::format("struct {}_Matrix {{ {}}}\n", operand_, members);
  if (out_rank_ > 2 && !arrays_.empty()) body += "  var kiln_rest = kiln_i;\n";
  for (int axis = -3; axis >= -out_rank_ && !arrays_.empty(); --axis) {
    const std::string size = fmt::format("params.{}d{}", prefix_, -axis);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      body += fmt::format("  kiln_p{0} += (kiln_rest % {1}) * params.{2}s{0}_{3};\n", i, size,
                          prefix_, -axis);
    }
    body += fmt::format("  kiln_rest /= {};\n", size);
  }
  text += fmt::format("fn {0}_matrix(kiln_i: u32) -> {0}_Matrix {{\n{1}  return {2};\n}}\n",
                      operand_, body, matrix(starts));
  return text + fmt::format("fn {0}_move({1}) -> {0}_Matrix {{ return {2}; }}\n", operand_,
                            parameters(), matrix(moved));
}

}  // namespace kiln::dispatch::wgsl
