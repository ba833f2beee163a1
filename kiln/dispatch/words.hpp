#pragma once
/// Numbers as the 32-bit words in which kernels get them.
#include <cstdint>
#include <string_view>

#include "kiln/support/dtype.hpp"

namespace kiln::dispatch {

/// Throws DTypeError that begins with `op` unless the dtype has the number. Integers must be exact.
/// Floats are rounded, but a finite number may not become infinite.
void require_number(std::string_view op, double value, DType dtype);

/// `value` as the word of a param of dtype `dtype`. Throws DTypeError that begins with `op` for a
/// number that an integer dtype or bool does not have. Floats may become infinite, as in
/// arithmetic.
std::uint32_t word_of(std::string_view op, double value, DType dtype);

/// `size` as a u32. Throws ShapeError that begins with `op` if it does not fit.
std::uint32_t word_of_size(std::string_view op, std::int64_t size);

}  // namespace kiln::dispatch
