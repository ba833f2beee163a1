#include "kiln/dispatch/wgsl/backend.hpp"

namespace kiln::dispatch::wgsl {
namespace {

std::size_t most_operands(const Runtime& runtime) { return runtime.limits().storage_buffers; }

}  // namespace

const Backend backend{.most_operands = most_operands,
                      .run_elementwise = run_elementwise,
                      .run_reduction = run_reduction,
                      .has_rule = has_rule,
                      .run_kernel = run_kernel,
                      .takes_epilogue = takes_epilogue,
                      .raw_kernel = raw_kernel};

}  // namespace kiln::dispatch::wgsl
