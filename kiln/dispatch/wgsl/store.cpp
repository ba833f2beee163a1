#include "kiln/dispatch/wgsl/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

std::string element(const StoredArray& array, std::string_view index) {
  return array.vec4 ? fmt::format("{0}[({1}) / 4u][({1}) % 4u]", array.name, index)
                    : fmt::format("{}[{}]", array.name, index);
}

class Writer {
 public:
  Writer(const ComputedStore& store, std::set<std::string>& helpers)
      : store_(store), helpers_(helpers), type_(wgsl_storage_type(store.value)) {}

  std::string run() {
    std::string text = compute() + one_element();
    text += fmt::format("fn {}(index: u32, value: {}) {{\n  let z = kiln_element(index, value);\n",
                        store_.name, type_);
    for (std::size_t r = 0; r < store_.results.size(); ++r)
      text += fmt::format("  {} = z.y{};\n", element(store_.results[r], "index"), r);
    text += "}\n";
    if (!store_.four) return text;
    const bool by_four = reads_by_four(store_.reads, store_.results[0].vec4);
    return text + fmt::format("fn {}4(index: u32, value: vec4<{}>) {{\n{}{}}}\n", store_.name,
                              type_, by_four ? lanes_at_once() : lanes_one_by_one(), put_lanes());
  }

 private:
  std::string compute() {
    std::vector<DType> inputs{store_.value};
    for (const StoredArray& array : store_.operands) inputs.push_back(array.dtype);
    std::vector<DType> results;
    for (const StoredArray& array : store_.results) results.push_back(array.dtype);
    return compute_function(
        {store_.op, store_.body, store_.types, store_.param_prefix, inputs, results}, helpers_);
  }

  std::string coordinates() const {
    std::string text;
    for (const Reads* reads : store_.reads) text += reads->coordinates();
    return text;
  }

  /// Calls f(i, reads, j): operand i is the j-th of those that `reads` is about.
  template <class F>
  void each_operand(F f) const {
    std::size_t i = 0;
    for (const Reads* reads : store_.reads) {
      for (std::size_t j = 0; j < reads->size(); ++j) f(i++, *reads, j);
    }
  }

  /// The value that is finished, as loading it again would give it.
  std::string as_stored(std::string_view value) const {
    return wgsl_rounded(store_.value, wgsl_load(store_.value, value), helpers_);
  }

  std::string one_element() const {
    std::string arguments = as_stored("value");
    each_operand([&](std::size_t i, const Reads& reads, std::size_t j) {
      const StoredArray& array = store_.operands[i];
      arguments += ", " + wgsl_load(array.dtype, element(array, reads.position(j)));
    });
    return fmt::format(
        "fn kiln_element(index: u32, value: {}) -> KilnResults {{\n{}  return "
        "kiln_compute({});\n}}\n",
        type_, coordinates(), arguments);
  }

  static std::string lanes_one_by_one() {
    std::string text;
    for (int lane = 0; lane < 4; ++lane)
      text += fmt::format("  let z{0} = kiln_element(index + {0}u, value[{0}]);\n", lane);
    return text;
  }

  std::string lanes_at_once() const {
    std::string text = coordinates();
    std::array<std::string, 4> arguments;
    for (std::size_t lane = 0; lane < 4; ++lane)
      arguments[lane] = as_stored(fmt::format("value[{}]", lane));
    each_operand([&](std::size_t i, const Reads& reads, std::size_t j) {
      const StoredArray& array = store_.operands[i];
      const bool quad = array.vec4 && reads.is_quad(j);
      if (quad)
        text += fmt::format("  let q{} = {}[({}) / 4u];\n", i, array.name, reads.position(j));
      for (std::size_t lane = 0; lane < 4; ++lane) {
        const std::string stored = quad ? fmt::format("q{}[{}]", i, lane)
                                        : element(array, reads.position(j, static_cast<int>(lane)));
        arguments[lane] += ", " + wgsl_load(array.dtype, stored);
      }
    });
    for (std::size_t lane = 0; lane < 4; ++lane)
      text += fmt::format("  let z{} = kiln_compute({});\n", lane, arguments[lane]);
    return text;
  }

  std::string put_lanes() const {
    std::string text;
    for (std::size_t r = 0; r < store_.results.size(); ++r) {
      const StoredArray& array = store_.results[r];
      if (array.vec4) {
        text += fmt::format("  {0}[index / 4u] = vec4<{1}>(z0.y{2}, z1.y{2}, z2.y{2}, z3.y{2});\n",
                            array.name, wgsl_storage_type(array.dtype), r);
        continue;
      }
      for (int lane = 0; lane < 4; ++lane)
        text += fmt::format("  {0}[index + {1}u] = z{1}.y{2};\n", array.name, lane, r);
    }
    return text;
  }

  const ComputedStore& store_;
  std::set<std::string>& helpers_;
  std::string_view type_;
};

}  // namespace

std::string declare_array(KernelId& id, std::uint32_t group, std::uint32_t binding, Access access,
                          const StoredArray& array) {
  id.bindings.push_back({group, binding, access});
  const std::string_view type = wgsl_storage_type(array.dtype);
  return fmt::format("@group({}) @binding({}) var<storage, {}> {}: array<{}>;\n", group, binding,
                     access == Access::read ? "read" : "read_write", array.name,
                     array.vec4 ? fmt::format("vec4<{}>", type) : std::string(type));
}

std::string enable_f16(std::string_view declarations) {
  return mentions(declarations, "f16") ? "enable f16; " : "";
}

std::string compute_function(const ComputedBody& of, std::set<std::string>& helpers) {
  std::vector<std::string> names;
  std::string parameters;
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    names.push_back(fmt::format("v{}", i));
    parameters += fmt::format("{}v{}: {}", i == 0 ? "" : ", ", i, wgsl_compute_type(of.inputs[i]));
  }
  const WgslBody printed = print_wgsl(of.op, of.body, of.types, names, of.param_prefix, "t");
  helpers.insert(printed.helpers.begin(), printed.helpers.end());
  std::string fields;
  std::string results;
  for (std::size_t r = 0; r < of.results.size(); ++r) {
    fields += fmt::format("y{}: {}, ", r, wgsl_storage_type(of.results[r]));
    results +=
        (r == 0 ? "" : ", ") + wgsl_store(of.types.roots[r], of.results[r], printed.results[r]);
  }
  return fmt::format(
      "struct KilnResults {{ {}}}\n"
      "fn kiln_compute({}) -> KilnResults {{\n{}  return KilnResults({});\n}}\n",
      fields, parameters, printed.statements, results);
}

std::string plain_store(std::string_view name, const StoredArray& array, bool four) {
  const std::string_view type = wgsl_storage_type(array.dtype);
  std::string text = fmt::format("fn {}(index: u32, value: {}) {{ {} = value; }}\n", name, type,
                                 element(array, "index"));
  if (!four) return text;
  text += fmt::format("fn {}4(index: u32, value: vec4<{}>) {{ ", name, type);
  if (array.vec4) return text + fmt::format("{}[index / 4u] = value; }}\n", array.name);
  for (int i = 0; i < 4; ++i)
    text += fmt::format("{0}[index + {1}u] = value[{1}]; ", array.name, i);
  return text + "}\n";
}

std::string computed_store(const ComputedStore& store, std::set<std::string>& helpers) {
  return Writer(store, helpers).run();
}

bool reads_by_four(std::span<const Reads* const> reads, bool vec4) {
  return vec4 && std::ranges::all_of(reads, [](const Reads* r) { return r->by_four(); });
}

}  // namespace kiln::dispatch::wgsl
