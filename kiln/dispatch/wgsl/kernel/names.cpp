#include "kiln/dispatch/wgsl/kernel/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "kiln/kernel/wgsl_name.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// Whether generated stores have a local variable of that name, which would hide an
/// array.
bool is_local_of_stores(std::string_view name) {
  if (name == "index" || name == "value") return true;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() > 1 && std::string_view("qz").find(name[0]) != std::string_view::npos &&
         std::ranges::all_of(name.substr(1), digit);
}

class Names {
 public:
  explicit Names(const OpTable& table) : op_(table.name) {}

  void add(std::string_view kind, std::string_view name) {
    if (const std::string_view why = why_no_operand_name(name); !why.empty())
      refuse(kind, name, why);
    if (!all_.emplace(name).second) refuse(kind, name, "is another operand's, too");
  }
  /// The functions of an operand have its name and a suffix.
  void check_functions() const {
    constexpr std::array ends{"_batch", "_shape", "_stride", "_offset"};
    for (const std::string& name : all_) {
      for (const std::string_view end : ends) {
        if (const auto at = all_.find(name + std::string(end)); at != all_.end())
          refuse("operand", *at, fmt::format("is what a function over '{}' is called", name));
      }
    }
  }
  [[noreturn]] void refuse(std::string_view kind, std::string_view name,
                           std::string_view why) const {
    throw KernelError(fmt::format("{}: {} '{}': the name {}", op_, kind, name, why));
  }

 private:
  std::string_view op_;
  std::set<std::string> all_;
};

}  // namespace

void check_names(const OpTable& table, const webgpu::Launch& launch, std::span<const Operand> in,
                 std::span<const Operand> out) {
  Names names(table);
  for (const Operand& t : in) names.add("input", t.name);
  for (const Operand& t : out) names.add("output", t.name);
  for (const Scratch& s : launch.scratch) names.add("scratch", s.name);
  names.check_functions();
  const auto in_store = [&](std::string_view kind, std::string_view name) {
    if (is_local_of_stores(name)) names.refuse(kind, name, "is a local one of the generated store");
  };
  if (launch.store) {
    for (const std::string& name : launch.store->inputs) in_store("input", name);
  }
  if (launch.access != OutputAccess::write) {
    for (const Operand& t : out) in_store("output", t.name);
  }
  for (const LaunchParam& p : launch.params) {
    if (const std::string_view why = why_no_param_name(p.name); !why.empty())
      names.refuse("param", p.name, why);
  }
}

void check_load_name(const OpTable& table, const webgpu::Launch& launch,
                     std::span<const Operand> in, std::span<const Operand> out,
                     std::string_view operand, bool by_coordinates) {
  const Names names(table);
  std::vector<std::string> functions{fmt::format("load_{}", operand),
                                     fmt::format("load_{}4", operand)};
  if (by_coordinates) {
    for (const std::string_view end : {"_at", "_at4", "_down4"})
      functions.push_back(fmt::format("load_{}{}", operand, end));
    for (const std::string_view end : {"_matrix", "_move", "_Matrix"})
      functions.push_back(fmt::format("{}{}", operand, end));
  }
  for (const std::string& function : functions) {
    const auto has = [&](const auto& list) {
      return std::ranges::any_of(list, [&](const auto& other) { return other.name == function; });
    };
    if (has(in) || has(out) || has(launch.scratch))
      names.refuse("operand", function, fmt::format("is what the load of '{}' is called", operand));
  }
}

}  // namespace kiln::dispatch::wgsl
