#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {

/// Whether `runtime` takes kernels in `language`.
bool accepts(const Runtime& runtime, Language language);

/// Whether `runtime` takes the launches that an operation makes by hand. Each says what it is
/// written in.
bool takes_launches(const Runtime& runtime);

/// A tensor whose elements do not matter.
struct Described {
  DType dtype;
  const Layout& layout;
};

/// Whether the operation has a kernel for these operands in a language that `runtime` accepts, or
/// needs none. Asks its kernel rule once for each key; where that throws, the operation itself is
/// to say why.
bool has_kernel_for(const OpTable& table, const void* op, Runtime& runtime,
                    std::span<const Described> inputs, std::span<const TensorSpec> out);
/// Whether has_kernel_for would ask it: only then it looks at `inputs` and `out`.
bool asks_kernel_rule(const OpTable& table, const Runtime& runtime);
/// The languages it has kernels in for these operands, for a message. Asks its kernel rule.
std::vector<Language> languages_offered(const OpTable& table, const void* op,
                                        const Runtime& runtime, std::span<const Described> inputs,
                                        std::span<const TensorSpec> out);

/// The error of an operation none of whose kernels is written in a language that `runtime` accepts:
/// both sides, and the ways out.
UnsupportedError no_accepted_kernel(std::string_view op, const Runtime& runtime,
                                    std::span<const Language> offered);

}  // namespace kiln::dispatch
