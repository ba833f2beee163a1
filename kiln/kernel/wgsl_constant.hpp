#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::wgsl {

/// Wide enough for any sum or product of two 64-bit numbers.
__extension__ using Wide = __int128;

/// Thrown for an expression that kiln cannot evaluate. It becomes a KernelError that names the
/// place.
struct Unclear {};

/// The value of a constant expression. "int" and "float" are the abstract types.
struct Constant {
  std::string_view type = "int";
  std::int64_t whole = 0;
  double real = 0;

  [[nodiscard]] bool is_real() const { return type == "f32" || type == "f16" || type == "float"; }
  [[nodiscard]] double as_real() const { return is_real() ? real : static_cast<double>(whole); }
};

Constant make_whole(std::string_view type, Wide value);
Constant make_real(std::string_view type, double value);
Constant make_bool(bool value);

/// Converts both to one type, as WGSL converts abstract numbers.
void unify(Constant& a, Constant& b);
/// The value of a literal.
Constant literal(std::string_view text);
/// The value of a binary operator.
Constant combine(std::string_view op, Constant a, Constant b);
/// The value of a cast or of a function call.
Constant call(std::string_view name, std::vector<Constant> in);

}  // namespace kiln::wgsl
