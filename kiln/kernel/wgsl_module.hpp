#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/kernel/wgsl_tokens.hpp"

namespace kiln {

/// What kiln knows about a WGSL text before it is compiled: the workgroup that an entry point
/// needs, and the values that an `override` can hold. Expressions that it cannot evaluate are
/// refused. Text that is not WGSL is left to the compiler.
class WgslModule {
 public:
  /// Values of overrides, by name or `@id`.
  using Constants = std::span<const std::pair<std::string, double>>;

  /// The source must outlive it.
  explicit WgslModule(std::string_view source);

  /// Throws KernelError for a constant that no override has, or that its type cannot hold: 1.5 as
  /// an i32, 3e9 as an i32, -1 as a u32, 2 as a bool, 1e39 as an f32.
  void check_constants(Constants constants) const;

  /// The entry point's `@workgroup_size`; nothing if the text has no such entry point. Throws
  /// KernelError if it is an expression that cannot be evaluated.
  [[nodiscard]] std::optional<std::array<std::uint64_t, 3>> workgroup_size(
      std::string_view entry, Constants constants) const;

  /// Bytes of workgroup memory that the entry point uses, as WebGPU counts them: the sizes, each
  /// rounded up to 16, of the variables that the entry point and the functions it calls name.
  /// Throws KernelError if a size cannot be evaluated.
  [[nodiscard]] std::uint64_t workgroup_bytes(std::string_view entry, Constants constants) const;

 private:
  friend class WgslReader;
  friend class WgslEvaluator;
  friend class WgslExpression;
  friend class WgslType;

 public:
  /// Tokens [begin, end).
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    [[nodiscard]] bool empty() const { return begin >= end; }
  };

 private:
  struct Value {
    Range type;        ///< empty if none is written
    Range expression;  ///< empty if there is none
    std::string id;    ///< of an override with `@id`
    bool is_override = false;
  };
  struct Member {
    Range type;
    Range align;
    Range size;
  };
  struct Function {
    std::vector<Range> workgroup_size;  ///< empty if it is no entry point
    std::set<std::string_view> names;   ///< that it mentions
  };

  std::vector<WgslToken> tokens_;
  std::map<std::string_view, Value> values_;
  std::map<std::string_view, Range> aliases_;
  std::map<std::string_view, std::vector<Member>> structs_;
  std::map<std::string_view, Range> workgroup_variables_;  ///< their types
  std::map<std::string_view, Function> functions_;
};

}  // namespace kiln
