#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/kernel/check_results.hpp"
#include "kiln/dispatch/kernel/client.hpp"
#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/dispatch/kernel/languages.hpp"
#include "kiln/dispatch/kernel/operands.hpp"
#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/dispatch/wgsl/kernel/bindings.hpp"
#include "kiln/dispatch/wgsl/kernel/candidates.hpp"
#include "kiln/dispatch/wgsl/kernel/launch_epilogue.hpp"
#include "kiln/dispatch/wgsl/kernel/loads.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// A prepared operation with its attributes, dtypes and layouts: everything except the buffers and
/// the values of the Params.
struct PreparedKernel : Prepared {
  std::vector<std::uint32_t> words;
  std::vector<RenderedLaunch::Patch> patches;
  std::array<std::uint32_t, 3> grid{};
  std::vector<TensorSpec> scratch;
  std::vector<bool> dense;  ///< which inputs are copied unless they are dense
  bool zeroed = false;
  BodyPtr epilogue;                              ///< keeps the address in the key taken
  std::vector<BodyPtr> producers;                ///< likewise
  std::vector<RenderedLaunch::Scalars> scalars;  ///< of each producer
  BodyTypes store_types;
  std::size_t epilogue_word = 0;
};

std::string key_of(const OpTable& table, const void* op, std::span<const RawTensor> inputs,
                   std::span<const TensorSpec> out, const Store& store,
                   std::span<const FusedProducer> producers) {
  std::string key = "k";
  append_call(key, table, op, inputs, out);
  store.append_key(key);
  append_key(key, producers);
  return key;
}

/// The first candidate in an accepted language that does not decline; null if there is none.
const webgpu::Launch* first_willing(const Runtime& runtime,
                                    const std::vector<webgpu::Launch>& candidates) {
  const auto at = std::ranges::find_if(candidates, [&](const webgpu::Launch& launch) {
    return launch.declined.empty() && accepts(runtime, launch.source.language());
  });
  return at == candidates.end() ? nullptr : &*at;
}

const webgpu::Launch& choose(const OpTable& table, const Runtime& runtime,
                             const std::vector<webgpu::Launch>& candidates) {
  if (const webgpu::Launch* launch = first_willing(runtime, candidates)) return *launch;
  std::string reasons;
  std::vector<Language> offered;
  for (const webgpu::Launch& candidate : candidates) {
    offered.push_back(candidate.source.language());
    if (accepts(runtime, offered.back())) reasons += "\n  " + candidate.declined;
  }
  if (reasons.empty()) throw no_accepted_kernel(table.name, runtime, offered);
  throw KernelError(fmt::format("{}: every kernel declines:{}", table.name, reasons));
}

bool stores_once(const webgpu::Launch& launch, std::size_t outputs) {
  return outputs == 1 && launch.access == OutputAccess::write && !launch.zeroed &&
         launch.source.language() == Language::wgsl;
}

/// Whether the launch needs the operand dense. Stores and loads read operands by their strides. One
/// that is loaded many times is dense all the same, so that each load costs less.
bool wants_dense(const webgpu::Launch& launch, std::string_view name, const OperandReads& reads) {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::ranges::find(list, name) != list.end();
  };
  if (names(launch.dense)) return true;
  if (reads.loads_alone()) {
    const bool repeated =
        std::ranges::find(launch.repeated, name, &Repeated::name) != launch.repeated.end();
    return !launch.strided && repeated;
  }
  const bool store_alone =
      launch.store && names(launch.store->inputs) && !mentions_operand(launch, name);
  return !launch.strided && !store_alone;
}

[[noreturn]] void refuse_epilogue(const OpTable& table) {
  throw KernelError(fmt::format(
      "{}: an epilogue needs a kernel that writes one result through its generated store",
      table.name));
}

std::shared_ptr<const PreparedKernel> prepare(Runtime& runtime, const OpTable& table,
                                              const void* op, std::span<const RawTensor> inputs,
                                              std::span<const TensorSpec> specs,
                                              std::span<const Param* const> params,
                                              const FusedEpilogue* epilogue,
                                              std::span<const FusedProducer> producers) {
  std::vector<Operand> in = operands(table.inputs, inputs);
  const std::vector<Operand> out = operands(table.outputs, specs);
  const CandidatesPtr offered = candidates(runtime, table, op, in, specs);
  const webgpu::Launch& launch = choose(table, runtime, offered->launches);
  if (epilogue != nullptr && !stores_once(launch, specs.size())) refuse_epilogue(table);
  const std::span<const OperandReads> reads = offered->reads_of(launch);
  std::vector<bool> dense;
  for (std::size_t i = 0; i < in.size(); ++i) {
    dense.push_back(!producer_of(producers, i) && wants_dense(launch, in[i].name, reads[i]));
    if (dense.back()) in[i].layout = Layout::dense(in[i].layout.shape);
  }
  RenderedLaunch rendered = render(table, launch, reads, in, out, {offered->params, params},
                                   runtime.limits(), epilogue, producers);
  auto prepared = std::make_shared<PreparedKernel>();
  try {
    prepared->kernel = runtime.compile(rendered.id, table.name);
  } catch (const KernelError& error) {
    throw KernelError(rendered.source.locate(error.what()));
  }
  prepared->words = std::move(rendered.words);
  prepared->patches = std::move(rendered.patches);
  prepared->grid = rendered.grid;
  prepared->dense = std::move(dense);
  prepared->zeroed = launch.zeroed;
  prepared->store_types = std::move(rendered.store_types);
  prepared->epilogue_word = rendered.epilogue_word;
  if (epilogue != nullptr) prepared->epilogue = epilogue->body;
  for (const FusedProducer& p : producers) prepared->producers.push_back(p.body);
  prepared->scalars = std::move(rendered.producers);
  for (const Scratch& s : launch.scratch) prepared->scratch.push_back({Shape{s.elements}, s.dtype});
  return prepared;
}

/// The operand, made dense. Throws UnsupportedError on a device that takes SPIR-V, because kiln's
/// kernel that copies is WGSL.
RawTensor made_dense(const OpTable& table, std::size_t input, const RawTensor& x) {
  const bool lies_dense = x.layout.is_dense() && x.layout.offset == 0;
  if (!lies_dense && !accepts(*x.runtime, Language::wgsl)) {
    throw UnsupportedError(
        fmt::format("{}: '{}' is a strided view {}, which a kernel in WGSL would make dense; this "
                    "device ({}: {}) takes none: pass a dense tensor",
                    table.name, table.inputs[input], to_string(x.shape()), x.runtime->name(),
                    x.runtime->adapter()));
  }
  return make_dense(x);
}

bool nothing_to_compute(std::span<const TensorSpec> out) {
  return std::ranges::all_of(out,
                             [](const TensorSpec& spec) { return spec.shape.elements() == 0; });
}

/// The metadata block with the numbers of this launch.
std::vector<std::uint32_t> words_of(const OpTable& table, const PreparedKernel& prepared,
                                    std::span<const Param* const> params, const Store& store,
                                    std::span<const FusedProducer> producers) {
  std::vector<std::uint32_t> words = prepared.words;
  for (const auto& patch : prepared.patches)
    words[patch.word] = word_of(table.name, params[patch.param]->value(), DType::f32);
  for (std::size_t i = 0; i < producers.size(); ++i) {
    std::size_t at = prepared.scalars[i].word;
    each_param(table.name, "", producers[i].params, prepared.scalars[i].types,
               [&](auto, std::string_view, std::uint32_t word) { words[at++] = word; });
  }
  const std::vector<std::uint32_t> own = store.words(prepared.store_types);
  std::ranges::copy(own, words.begin() + static_cast<std::ptrdiff_t>(prepared.epilogue_word));
  return words;
}

std::vector<TensorSpec> results_of(std::span<const TensorSpec> out, const FusedEpilogue* epilogue) {
  if (epilogue == nullptr) return {out.begin(), out.end()};
  std::vector<TensorSpec> specs;
  for (const DType dtype : epilogue->out) specs.push_back({out[0].shape, dtype});
  return specs;
}

std::vector<RawTensor> launch(const OpTable& table, const void* op,
                              const std::shared_ptr<Runtime>& runtime,
                              std::span<const RawTensor> inputs, std::span<const TensorSpec> out,
                              const FusedEpilogue* epilogue,
                              std::span<const FusedProducer> producers) {
  std::vector<RawTensor> results;
  for (const TensorSpec& spec : results_of(out, epilogue))
    results.push_back(allocate(table.name, runtime, spec));
  if (nothing_to_compute(out)) return results;
  std::vector<const Param*> params;
  table.params(op, params);
  const Store store(table.name, out[0], epilogue);
  const auto prepared = KernelCache::of(*runtime).find_or<PreparedKernel>(
      key_of(table, op, inputs, out, store, producers),
      [&] { return prepare(*runtime, table, op, inputs, out, params, epilogue, producers); });

  std::vector<RawTensor> keep(inputs.begin(), inputs.end());
  std::vector<Binding> bindings;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const FusedProducer* producer = producer_of(producers, i)) {
      for (const RawTensor& t : producer->inputs) bindings.push_back({t.buffer});
      continue;
    }
    if (prepared->dense[i]) keep[i] = made_dense(table, i, keep[i]);
    bindings.push_back({keep[i].buffer});
  }
  for (const TensorSpec& spec : prepared->scratch) {
    keep.push_back(allocate(table.name, runtime, spec));
    bindings.push_back({keep.back().buffer});
  }
  for (const RawTensor& t : store.inputs()) bindings.push_back({t.buffer});
  for (const RawTensor& t : results) {
    if (prepared->zeroed) runtime->fill(t.buffer, 0, (bytes_of(t.spec()) + 3) / 4 * 4, 0);
    bindings.push_back({t.buffer});
  }
  const std::vector<std::uint32_t> words = words_of(table, *prepared, params, store, producers);
  runtime->launch(prepared->kernel, bindings, std::as_bytes(std::span(words)), prepared->grid);
  return results;
}

std::vector<RawTensor> forward(const OpTable& table, const void* op,
                               const std::shared_ptr<Runtime>& runtime,
                               std::span<const RawTensor> inputs, std::span<const TensorSpec> out) {
  Client client(runtime, table.name);
  std::vector<RawTensor> results = table.webgpu_forward(op, client, inputs, out);
  check_results({table.name, table.outputs, "webgpu_forward"}, runtime, results, out);
  return results;
}

}  // namespace

std::vector<RawTensor> run_kernel(const std::shared_ptr<Runtime>& runtime, const OpTable& table,
                                  const void* op, std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out, const FusedEpilogue* epilogue,
                                  std::span<const FusedProducer> producers) {
  const bool fused = epilogue != nullptr || !producers.empty();
  if (table.webgpu_forward != nullptr && !fused) return forward(table, op, runtime, inputs, out);
  if (table.webgpu_forward != nullptr && !producers.empty()) refuse_producer(table, producers[0]);
  if (epilogue != nullptr && (table.webgpu_forward != nullptr || out.size() != 1))
    refuse_epilogue(table);
  return launch(table, op, runtime, inputs, out, epilogue, producers);
}

Fusable fusable(const OpTable& table, const void* op, Runtime& runtime,
                std::span<const Operand> inputs, std::span<const TensorSpec> out) {
  if (table.webgpu_forward != nullptr || table.webgpu_kernel == nullptr) return {};
  const CandidatesPtr offered = candidates(runtime, table, op, inputs, out);
  const webgpu::Launch* launch = first_willing(runtime, offered->launches);
  if (launch == nullptr || launch->source.language() != Language::wgsl) return {};
  Fusable fusable{.scratch = static_cast<int>(launch->scratch.size()),
                  .store = stores_once(*launch, out.size())};
  const std::span<const OperandReads> reads = offered->reads_of(*launch);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    fusable.loads.push_back(loads_of(*launch, table.inputs[i], reads[i]));
  return fusable;
}

}  // namespace kiln::dispatch::wgsl
