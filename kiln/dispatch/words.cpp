#include "kiln/dispatch/words.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kiln/support/error.hpp"
#include "kiln/support/float16.hpp"

namespace kiln::dispatch {

void require_number(std::string_view op, double value, DType dtype) {
  if (is_float(dtype)) {
    const float stored = static_cast<float>(value);
    const bool overflows =
        std::isinf(dtype == DType::f16 ? static_cast<float>(float16(stored)) : stored);
    if (overflows && std::isfinite(value)) {
      throw DTypeError(fmt::format("{}: the number {} is beyond the finite numbers of {}", op,
                                   value, to_string(dtype)));
    }
    return;
  }
  const double low = dtype == DType::i32 ? std::numeric_limits<std::int32_t>::min() : 0;
  const double high = dtype == DType::boolean ? 1
                      : dtype == DType::i32   ? std::numeric_limits<std::int32_t>::max()
                                              : std::numeric_limits<std::uint32_t>::max();
  if (value != std::trunc(value) || value < low || value > high) {
    throw DTypeError(fmt::format("{}: the number {} is no {}; cast the tensor first", op, value,
                                 to_string(dtype)));
  }
}

std::uint32_t word_of(std::string_view op, double value, DType dtype) {
  if (!is_float(dtype)) require_number(op, value, dtype);
  switch (dtype) {
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    // Kernels compute in f32, but the number must be one that an f16 tensor can hold.
    case DType::f16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(float16(static_cast<float>(value))));
    case DType::i32:
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case DType::u32:
      return static_cast<std::uint32_t>(value);
    case DType::boolean:
      return value != 0 ? 1 : 0;
  }
  return 0;
}

std::uint32_t word_of_size(std::string_view op, std::int64_t size) {
  if (size < 0 || size > std::numeric_limits<std::uint32_t>::max()) {
    throw ShapeError(fmt::format("{}: kernels count with 32 bits, {} does not fit", op, size));
  }
  return static_cast<std::uint32_t>(size);
}

}  // namespace kiln::dispatch
