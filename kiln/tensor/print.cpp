#include "kiln/tensor/print.hpp"

#include <fmt/format.h>

#include <ostream>
#include <vector>

namespace kiln {
namespace {

constexpr std::int64_t shown_at_each_end = 3;

std::vector<std::string> spelled(const AnyTensor& tensor) {
  std::vector<std::string> out;
  const auto spell = [&](const auto& values) {
    for (const auto value : values) out.push_back(fmt::format("{}", value));
  };
  switch (tensor.dtype()) {
    case DType::f32:
      spell(tensor.to_vector<float>());
      break;
    case DType::f16:
      for (const float16 value : tensor.to_vector<float16>())
        out.push_back(fmt::format("{}", static_cast<float>(value)));
      break;
    case DType::i32:
      spell(tensor.to_vector<std::int32_t>());
      break;
    case DType::u32:
      spell(tensor.to_vector<std::uint32_t>());
      break;
    case DType::boolean:
      for (const bool value : tensor.to_vector<bool>()) out.emplace_back(value ? "true" : "false");
      break;
  }
  return out;
}

void append_axis(std::string& out, const Shape& shape, int axis, std::int64_t at,
                 const std::vector<std::string>& values) {
  if (axis == shape.rank()) {
    out += values[static_cast<std::size_t>(at)];
    return;
  }
  const std::int64_t size = shape[axis];
  const bool innermost = axis + 1 == shape.rank();
  const std::string separator =
      innermost ? ", " : ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
  out += '[';
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) out += separator;
    if (size > 2 * shown_at_each_end + 1 && i == shown_at_each_end) {
      out += "...";
      i = size - shown_at_each_end - 1;
      continue;
    }
    append_axis(out, shape, axis + 1, at * size + i, values);
  }
  out += ']';
}

}  // namespace

std::string to_string(const AnyTensor& tensor) {
  std::string out;
  append_axis(out, tensor.shape(), 0, 0, spelled(tensor));
  return fmt::format("{} {} on {}", out, to_string(tensor.spec()), to_string(tensor.device()));
}

std::ostream& operator<<(std::ostream& out, const AnyTensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace kiln
