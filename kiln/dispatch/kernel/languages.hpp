#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {

/// Whether `runtime` takes kernels in `language`.
bool accepts(const Runtime& runtime, Language language);

/// Whether `runtime` takes the launches that an operation makes by hand. Each launch names its own
/// language.
bool takes_launches(const Runtime& runtime);

/// The dtype and layout of a tensor, without its elements.
struct Described {
  DType dtype;
  const Layout& layout;
};

/// Whether the operation has a kernel for these operands in a language that `runtime` accepts, or
/// needs none. It asks the kernel rule once for each key. If the rule throws, this gives true, and
/// the operation throws when it runs.
bool has_kernel_for(const OpTable& table, const void* op, Runtime& runtime,
                    std::span<const Described> inputs, std::span<const TensorSpec> out);
/// Whether has_kernel_for would ask the rule. Only then it looks at `inputs` and `out`.
bool asks_kernel_rule(const OpTable& table, const Runtime& runtime);
/// The languages in which it has kernels for these operands, for a message. Asks its kernel rule.
std::vector<Language> languages_offered(const OpTable& table, const void* op, Runtime& runtime,
                                        std::span<const Described> inputs,
                                        std::span<const TensorSpec> out);

/// The error of an operation that has no kernel in a language which `runtime` accepts. It names the
/// languages of both, and what the user can do.
UnsupportedError no_accepted_kernel(std::string_view op, const Runtime& runtime,
                                    std::span<const Language> offered);

}  // namespace kiln::dispatch
