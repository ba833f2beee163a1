#pragma once
#include <cstdint>
#include <optional>

#include "kiln/support/argument.hpp"

namespace kiln {

/// In x(all, 0): every element along an axis.
struct All {};
inline constexpr All all;

/// In x(ellipsis, 0): all of as many axes as the other places leave.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;

/// One place of x(...): what is taken along an axis. An integer takes one element, and the axis
/// goes; `slice` takes a part; `all` and `ellipsis` take everything. Negative numbers count from
/// the end.
///
///     const AnyTensor x = tensor({{1, 2}, {3, 4}});
///     x(-1, all);   // [3, 4]
///     x(ellipsis, slice(1, 2));   // [2, 4]
class Index {
 public:
  /// What is taken: one element, a part, the whole axis, or the rest of the axes.
  enum class Kind : std::uint8_t { one, part, whole, rest };

  /// From an integer, `all` or `ellipsis`.
  ///
  ///     tensor({1, 2, 3})(Index(0));   // [1]
  template <WholeType T>
  Index(T at) : kind_(Kind::one), begin_(Integer(at)) {}  // NOLINT(google-explicit-constructor)
  Index(All) : kind_(Kind::whole) {}                      // NOLINT(google-explicit-constructor)
  Index(Ellipsis) : kind_(Kind::rest) {}                  // NOLINT(google-explicit-constructor)

  /// What was given. An integer is a begin.
  ///
  ///     const Index part = slice(1, 5, 2);
  ///     part.begin();   // [1]
  ///     part.step();   // [2]
  ///     part.end() == 5;   // [true]
  ///     part.kind() == Index::Kind::part;   // [true]
  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] std::optional<Integer> end() const { return end_; }
  [[nodiscard]] std::int64_t step() const { return step_; }

 private:
  friend Index slice(Integer begin, std::optional<Integer> end, Integer step);
  Index(std::int64_t begin, std::optional<Integer> end, std::int64_t step)
      : kind_(Kind::part), begin_(begin), end_(end), step_(step) {}

  Kind kind_;
  std::int64_t begin_ = 0;
  std::optional<Integer> end_{};
  std::int64_t step_ = 1;
};

/// In x(slice(1, 3), 0): elements begin, begin + step, ... below `end`, as the function
/// slice(x, axis, begin, end, step) takes them.
///
///     tensor({1, 2, 3, 4})(slice(0, 4, 2));   // [1, 3]
inline Index slice(Integer begin, std::optional<Integer> end = std::nullopt, Integer step = 1) {
  return {std::int64_t{begin}, end, std::int64_t{step}};
}

}  // namespace kiln
