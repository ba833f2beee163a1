#include "kiln/check/check.hpp"
#include "kiln/ops/matmul/matmul.hpp"

namespace kiln {
namespace {

CheckCase product(std::string name, const Shape& lhs, const Shape& rhs, bool bias) {
  CheckCase made{std::move(name), {lhs, rhs}, lhs[-1]};
  if (bias) made.inputs.push_back(matmul_spec("matmul_cases", {lhs}, {rhs}).shape);
  return made;
}

/// `shape` with axes of size 1 in front, up to `rank`.
Shape padded(const Shape& shape, std::int64_t rank) {
  Shape out;
  for (std::int64_t axis = shape.rank(); axis < rank; ++axis) out.push_back(1);
  for (const std::int64_t size : shape) out.push_back(size);
  return out;
}

}  // namespace

std::vector<CheckCase> matmul_cases(Flag bias, Integer rank) {
  // There are few kinds of sizes, because every combination of tile, layout and vector width is a
  // kernel to compile.
  std::vector<CheckCase> cases{
      product("matrices", {5, 7}, {7, 6}, bias),
      product("more than a tile", {2, 33, 19}, {2, 19, 67}, bias),
      product("whole tiles", {16, 16}, {16, 32}, bias),
      product("broadcast lhs", {1, 5, 7}, {3, 7, 6}, bias),
      product("broadcast rhs", {3, 5, 7}, {1, 7, 6}, bias),
      product("broadcast both", {2, 1, 6, 7}, {1, 3, 7, 5}, bias),
      product("square", {2, 6, 6}, {2, 6, 6}, bias),
      product("no rows", {2, 0, 5}, {2, 5, 3}, bias),
      product("no batch", {0, 5, 7}, {0, 7, 6}, bias),
      product("K = 0", {2, 5, 0}, {2, 0, 6}, bias),
      product("more batches than workgroups along an axis", {65'536, 1, 2}, {65'536, 2, 1}, bias),
  };
  cases.back().brief = true;
  if (rank == 0) return cases;
  std::erase_if(cases, [&](const CheckCase& c) { return c.inputs[0].rank() > rank; });
  for (CheckCase& c : cases) {
    for (Shape& shape : c.inputs) shape = padded(shape, rank);
  }
  return cases;
}

std::vector<CheckCase> elementwise_cases(Integer inputs) {
  const auto count = static_cast<std::size_t>(std::int64_t{inputs});
  const auto same = [&](std::string name, const Shape& shape) {
    return CheckCase{std::move(name), std::vector<Shape>(count, shape)};
  };
  std::vector<CheckCase> cases{same("one axis", {131}), same("three axes", {3, 5, 7}),
                               same("scalar", {}), same("multiple of four", {4, 8}),
                               same("empty", {2, 0, 3})};
  for (std::size_t i = 0; count > 1 && i < count; ++i) {
    cases.push_back(same("broadcast input " + std::to_string(i), {3, 4, 5}));
    cases.back().inputs[i] = Shape{4, 1};
  }
  return cases;
}

}  // namespace kiln
