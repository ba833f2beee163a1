#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/words.hpp"
#include "kiln/kernel/kernel_id.hpp"
#include "kiln/runtime/runtime.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/dtype.hpp"

namespace kiln::dispatch::wgsl {

/// The block of 32-bit numbers that a kernel gets with each launch: the WGSL struct `params` and
/// its values. It is passed as immediates if the adapter takes that many bytes, else in a uniform
/// ring. All members are numbers: immediates may not hold arrays, and the elements of an array in a
/// uniform block lie 16 bytes apart.
class Metadata {
 public:
  /// Adds a member, and gives the number of its word.
  std::size_t add(std::string_view name, std::string_view type, std::uint32_t word);
  /// Adds words without names of their own, and gives the number of the first.
  std::size_t add_words(std::span<const std::int64_t> words);
  /// Adds `kiln_zero`, the last word, if one of the helpers that the kernel calls reads it.
  void add_zero_for(const std::set<std::string>& helpers);
  /// A WGSL expression for word `index` among those of add_words.
  [[nodiscard]] static std::string word(std::size_t index);
  /// A WGSL expression for word `first + d` of `count`, where `d` is a u32 of the kernel; 0 if
  /// `count` is 0.
  [[nodiscard]] static std::string word_at(std::size_t first, std::size_t count,
                                           std::string_view d);

  /// How many members there are.
  [[nodiscard]] std::size_t named() const { return named_.size(); }
  [[nodiscard]] bool empty() const { return named_.empty() && words_.empty() && !zero_; }
  /// Declares `params` and says in `id` how it is passed.
  [[nodiscard]] std::string declare(const Limits& limits, std::uint32_t group,
                                    std::uint32_t binding, KernelId& id) const;
  /// The block, named members first.
  [[nodiscard]] std::vector<std::uint32_t> values() const;

 private:
  std::string members_;
  std::vector<std::uint32_t> named_;
  std::vector<std::uint32_t> words_;
  bool zero_ = false;
};

/// Calls sink(name, type, word) for the run-time scalars of a body with those dtypes: PREFIX0,
/// PREFIX1, ... `name` is a function, so that a launch of a prepared kernel, which wants the words
/// alone, makes no strings.
template <class Sink>
void each_param(std::string_view op, std::string_view prefix, std::span<const double> params,
                const BodyTypes& types, Sink sink) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    const DType dtype = types.params[i];
    const auto type = dtype == DType::boolean ? std::string_view("u32") : wgsl_compute_type(dtype);
    sink([=] { return fmt::format("{}{}", prefix, i); }, type, word_of(op, params[i], dtype));
  }
}

}  // namespace kiln::dispatch::wgsl
