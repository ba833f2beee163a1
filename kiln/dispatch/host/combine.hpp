#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/dispatch/reduction/reduction.hpp"
#include "kiln/scalar/host/tile_kernels.hpp"

namespace kiln::dispatch::host {

/// The elements of one result that were combined so far. `number` has every f32, i32 and u32
/// exactly.
struct Partial {
  double number = 0;       ///< a sum of floats or of their squares, or an extreme
  std::uint32_t word = 0;  ///< a sum of integers modulo 2^32, or where the extreme stands
};

/// Combines a reduction's elements, which are held as `lane`.
class Combiner {
 public:
  Combiner(Combine combine, DType element);

  /// The partial of no elements.
  [[nodiscard]] Partial neutral() const { return {neutral_, 0}; }
  /// Adds n elements that lie together. The first has that number along the reduced axis.
  void add(Partial& to, const void* elements, std::size_t n, std::int64_t first) const;
  /// Adds a partial of later elements.
  void add(Partial& to, const Partial& later) const;
  /// Adds element i to partial i, for n of them, all with that number.
  void add_each(Partial* to, const void* elements, std::size_t n, std::int64_t number) const;
  /// Combines `so_far[i]` with `elements[i]` for n results, in their own type. Null if positions or
  /// squares are needed. Sums of floats must be moved to partials now and then.
  [[nodiscard]] TileKernel elementwise() const;
  /// The value with which elementwise() starts.
  [[nodiscard]] std::uint32_t neutral_word() const { return neutral_word_; }
  /// A result of elementwise() as a partial.
  [[nodiscard]] Partial from_word(std::uint32_t word) const;
  /// Stores the result in `out`, multiplied by `scale` if it is a float.
  void store(const Partial& partial, double scale, DType out, void* to) const;

 private:
  [[nodiscard]] bool is_sum() const { return combine_ == Combine::sum || is_norm(); }
  [[nodiscard]] bool is_norm() const { return combine_ == Combine::norm; }
  [[nodiscard]] bool is_arg() const {
    return combine_ == Combine::argmax || combine_ == Combine::argmin;
  }
  [[nodiscard]] bool is_greatest() const {
    return combine_ == Combine::max || combine_ == Combine::argmax;
  }
  [[nodiscard]] bool beats(double a, double b) const;
  [[nodiscard]] double element(const void* elements, std::size_t i) const;
  [[nodiscard]] double extreme(const void* elements, std::size_t n) const;

  Combine combine_;
  Lane lane_;
  std::uint32_t neutral_word_;
  double neutral_;
};

}  // namespace kiln::dispatch::host
