#include "kiln/dispatch/kernel/languages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/kernel/operands.hpp"
#include "kiln/dispatch/kernel_cache.hpp"

namespace kiln::dispatch {
namespace {

/// Languages as bits.
using Languages = unsigned;
constexpr Languages bit(Language language) { return 1U << static_cast<unsigned>(language); }
constexpr Languages any = ~0U;

/// The answers of kernel rules on one runtime, by everything that they depend on.
class AnsweredLanguages : public RuntimeExtension {
 public:
  explicit AnsweredLanguages(Runtime&) {}

  /// `spelled` may change while `ask` runs.
  template <class Ask>
  Languages find_or(const std::string& spelled, Ask ask) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = answers_.find(spelled); at != answers_.end()) return at->second;
    }
    std::string key = spelled;
    const Languages answer = ask();  // outside the lock: a rule may take long
    if (answer == any) return any;
    const std::lock_guard lock(mutex_);
    if (answers_.size() >= KernelCache::max_entries) answers_.clear();
    answers_.emplace(std::move(key), answer);
    return answer;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Languages> answers_;
};

/// `any` if the rule throws: the operation throws the same when it runs.
Languages ask(const Backend& backend, const OpTable& table, const void* op, Runtime* runtime,
              std::span<const Described> inputs, std::span<const TensorSpec> out) {
  Languages all = 0;
  try {
    for (const Language language : backend.languages(table, op, runtime, inputs, out))
      all |= bit(language);
  } catch (...) {
    return any;
  }
  return all;
}

/// "WGSL or SPIR-V"; names each language once.
std::string listed(std::span<const Language> languages, std::string_view word) {
  std::vector<std::string_view> names;
  for (const Language language : languages) {
    const std::string_view name = to_string(language);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, word));
}

}  // namespace

bool accepts(const Runtime& runtime, Language language) {
  const auto all = runtime.languages();
  return std::ranges::find(all, language) != all.end();
}

bool takes_launches(const Runtime& runtime) { return backend_of(runtime).raw_kernel != nullptr; }

bool asks_kernel_rule(const OpTable& table, const Runtime& runtime) {
  return backend_of(runtime).asks_rule(table);
}

bool has_kernel_for(const OpTable& table, const void* op, Runtime& runtime,
                    std::span<const Described> inputs, std::span<const TensorSpec> out) {
  const Backend& backend = backend_of(runtime);
  if (!backend.asks_rule(table)) return backend.has_rule(table);
  std::string key;
  append_call(key, table, op, inputs, out);
  const Languages offered = runtime.extension<AnsweredLanguages>().find_or(
      key, [&] { return ask(backend, table, op, &runtime, inputs, out); });
  return std::ranges::any_of(runtime.languages(),
                             [&](Language language) { return (offered & bit(language)) != 0; });
}

std::vector<Language> languages_offered(const OpTable& table, const void* op, Runtime& runtime,
                                        std::span<const Described> inputs,
                                        std::span<const TensorSpec> out) {
  std::vector<Language> languages;
  for (const Backend* backend : all_backends()) {
    if (!backend->has_rule(table)) continue;
    Runtime* own = backend == &backend_of(runtime) ? &runtime : nullptr;
    const Languages known =
        backend->asks_rule(table) ? ask(*backend, table, op, own, inputs, out) : any;
    if (known == any) languages.push_back(backend->language);
    for (const Language language : {Language::wgsl, Language::spirv}) {
      if (known != any && (known & bit(language)) != 0) languages.push_back(language);
    }
  }
  return languages;
}

UnsupportedError no_accepted_kernel(std::string_view op, const Runtime& runtime,
                                    std::span<const Language> offered) {
  return UnsupportedError(fmt::format(
      "{}: it has no kernel for this device: {}: {} takes kernels in {}, the operation offers {}. "
      "Give it a kernel in {}, or let the device fall back to its reference: device.fallback(true)",
      op, runtime.name(), runtime.adapter(), listed(runtime.languages(), " or "),
      listed(offered, " and "), listed(runtime.languages(), " or ")));
}

}  // namespace kiln::dispatch
