#pragma once
/// Arguments that take what they say and nothing else. A plain parameter of type int takes a bool,
/// a character and half a number as well, so that max(x, 0.5) would be the maximum along axis 0.
#include <concepts>
#include <cstdint>
#include <utility>

#include "kiln/support/float16.hpp"

namespace kiln {

/// The integer types, without bool and the types of characters.
template <class T>
concept WholeType = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// The types of numbers: integers and floats.
template <class T>
concept NumberType = WholeType<T> || std::floating_point<T> || std::same_as<T, float16>;

/// An integer of any type: an axis, a size, an index. A bool, a character, a float or an enum in
/// its place does not compile. Throws ShapeError beyond 2^63.
///
///     const Integer axis = -1;
///     std::int64_t{axis};   // [-1]
class Integer {
 public:
  /// From and to the types of integers.
  template <WholeType T>
  constexpr Integer(T value)  // NOLINT(google-explicit-constructor): sum(x, 1)
      : value_(static_cast<std::int64_t>(value)) {
    if (!std::in_range<std::int64_t>(value)) refuse(static_cast<std::uint64_t>(value));
  }
  constexpr operator std::int64_t() const {  // NOLINT(google-explicit-constructor): it is one
    return value_;
  }
  /// As of std::int64_t, which it may not leave.
  ///
  ///     Integer n = 3;
  ///     n += 2;
  ///     n -= 1;
  ///     n *= 5;
  ///     std::int64_t{n};   // [20]
  constexpr Integer& operator+=(Integer other) { return *this = value_ + other.value_; }
  constexpr Integer& operator-=(Integer other) { return *this = value_ - other.value_; }
  constexpr Integer& operator*=(Integer other) { return *this = value_ * other.value_; }

 private:
  [[noreturn]] static void refuse(std::uint64_t value);
  std::int64_t value_;
};

/// A number of any type, beside tensors. A bool or a character in its place does not compile.
///
///     const Number half = 0.5;
///     double{half};   // [0.5]
///     half.is_whole();   // [false]
class Number {
 public:
  /// From the types of numbers, and to double.
  template <NumberType T>
  constexpr Number(T value)  // NOLINT(google-explicit-constructor): x + 1
      : value_(static_cast<double>(value)), whole_(std::integral<T>) {}
  constexpr operator double() const {  // NOLINT(google-explicit-constructor): it is one
    return value_;
  }
  /// Whether it was given as an integer.
  [[nodiscard]] constexpr bool is_whole() const { return whole_; }
  /// As of double. An integer stays one if the other is one, too, and it is not divided.
  ///
  ///     Number rate = 1.5;
  ///     rate += 1;
  ///     rate -= 0.5;
  ///     rate *= 3;
  ///     rate /= 2;
  ///     double{rate};   // [3]
  constexpr Number& operator+=(Number other) { return set(value_ + other.value_, other.whole_); }
  constexpr Number& operator-=(Number other) { return set(value_ - other.value_, other.whole_); }
  constexpr Number& operator*=(Number other) { return set(value_ * other.value_, other.whole_); }
  constexpr Number& operator/=(Number other) { return set(value_ / other.value_, false); }

 private:
  constexpr Number& set(double value, bool whole) {
    value_ = value;
    whole_ = whole_ && whole;
    return *this;
  }

  double value_;
  bool whole_;
};

/// A bool. A number or a pointer in its place does not compile.
///
///     const Flag keepdim = true;
///     bool{keepdim};   // [true]
class Flag {
 public:
  /// From and to bool.
  template <std::same_as<bool> T>
  constexpr Flag(T value)
      : value_(value) {}             // NOLINT(google-explicit-constructor): sum(x, 1, true)
  constexpr operator bool() const {  // NOLINT(google-explicit-constructor): it is one
    return value_;
  }

 private:
  bool value_;
};

}  // namespace kiln
