#pragma once
/// Scalar expressions as WGSL. f16 values are computed in f32 and rounded where they are stored.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/scalar/infer.hpp"

namespace kiln {

/// The type elements have in memory: "f32", "f16", "i32", "u32"; a bool is stored as u32.
std::string_view wgsl_storage_type(DType dtype);
/// The type they are computed in: "f32", "i32", "u32" or "bool".
std::string_view wgsl_compute_type(DType dtype);
/// `stored`, an expression of storage type, as an expression of the type for computing.
std::string wgsl_load(DType dtype, std::string_view stored);
/// `value`, an expression of dtype `from`, as it is stored in an array of dtype `to`.
std::string wgsl_store(DType from, DType to, std::string_view value);

/// `value`, of compute type, as it would be after a store as `dtype` and a load. (Compilers replace
/// f32(f16(value)) by the value itself.)
std::string wgsl_rounded(DType dtype, std::string_view value, std::set<std::string>& helpers);

/// A helper that reads `params.kiln_zero`, a u32 that is 0, which compilers do not know. A kernel
/// that calls the helper must declare that number.
inline constexpr std::string_view wgsl_hide = "kiln_hide";

/// How bodies name the coordinate along an axis, an i32 with the axis' number behind it, and the
/// position, a u32, of the element that they compute.
inline constexpr std::string_view wgsl_coordinate = "kiln_c";
inline constexpr std::string_view wgsl_position = "kiln_at";

/// A printed body: statements that define temporaries, then an expression for each root.
struct WgslBody {
  std::string statements;
  std::vector<std::string> lines;  ///< the same by node; empty for a node without a temporary
  std::vector<std::string> results;
  std::set<std::string> helpers;  ///< functions it calls; see wgsl_helpers
};

/// Prints a body. `inputs` has an expression for each slot, already loaded; for one that is read at
/// positions the name of its array. `param_prefix` and a
/// slot's number name a run-time scalar. Names of temporaries begin with `temp_prefix`. Throws
/// KernelError for a literal that WGSL cannot write, an infinity or NaN; pass it as a Param.
WgslBody print_wgsl(std::string_view op, const Body& body, const BodyTypes& types,
                    std::span<const std::string> inputs, std::string_view param_prefix,
                    std::string_view temp_prefix);

/// Adds a helper to the names of those that a kernel calls, and `wgsl_hide` if it calls that one.
void add_wgsl_helper(const std::string& name, std::set<std::string>& names);

/// The definitions of the named functions and of what they call, each once.
std::string wgsl_helpers(const std::set<std::string>& names);

/// Which of kiln's scalar functions (relu, sigmoid, silu, gelu, erf, is_nan; over Elem) a kernel
/// calls without defining them.
std::set<std::string> used_helpers(std::string_view source);

/// Whether `source` has `name` as a whole identifier.
bool mentions(std::string_view source, std::string_view name);

/// Whether `source` has `name` as a whole identifier followed by "(".
bool calls(std::string_view source, std::string_view name);

}  // namespace kiln
