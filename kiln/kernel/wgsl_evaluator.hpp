#pragma once
#include "kiln/kernel/wgsl_module.hpp"

namespace kiln {

inline std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
inline std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}
/// Rounded up to a multiple.
inline std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return multiple == 0 ? value : saturating_add(value, multiple - 1) / multiple * multiple;
}

/// Whether the WGSL type "i32", "u32", "bool", "f32" or "f16" can hold the number.
bool holds(std::string_view type, double value);

/// Sizes and constant expressions of a module, with given values of its overrides.
class WgslEvaluator {
 public:
  WgslEvaluator(const WgslModule& module, WgslModule::Constants constants)
      : module_(module), constants_(constants) {}

  struct Size {
    std::uint64_t size = 0;
    std::uint64_t align = 1;
  };
  /// The size of a type, in bytes. `what` is for errors.
  [[nodiscard]] Size layout(WgslModule::Range type, std::string_view what) const;
  /// The value of an expression that must be a whole number of 0 or more.
  [[nodiscard]] std::uint64_t count(WgslModule::Range expression, std::string_view what) const;
  /// The scalar type of a constant or an override: the written one, or that of its initialiser.
  [[nodiscard]] std::string_view type_of(std::string_view name) const;

 private:
  friend class WgslExpression;
  friend class WgslType;
  const WgslModule& module_;
  WgslModule::Constants constants_;
};

}  // namespace kiln
