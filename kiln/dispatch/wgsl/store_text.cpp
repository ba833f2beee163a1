#include "kiln/dispatch/wgsl/store_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// The suffix of the names of a step's values.
std::string suffix(int step) { return step == 0 ? std::string() : fmt::format("_{}", step); }
std::string index_of(int step) { return "index" + suffix(step); }

class Writer {
 public:
  Writer(const ComputedStore& store, std::set<std::string>& helpers)
      : store_(store), helpers_(helpers) {}

  std::string run() {
    std::string text = compute();
    if (store_.value) text += one_element();
    if (store_.one) {
      text += function(
          "", "",
          store_.value ? "  let z0 = kiln_element(index, value);\n" : coordinates() + result(0, 0));
      for (std::size_t r = 0; r < store_.results.size(); ++r) text += put(r, 0, 0);
      text += "}\n";
    }
    if (!store_.four) return text;
    const bool aligned = !store_.value || store_.results[0].vec4;
    return text +
           function("4", "vec4",
                    reads_by_four(store_.reads, aligned) ? lanes_at_once() : lanes_one_by_one()) +
           put_lanes() + "}\n";
  }

 private:
  /// `fn NAME(index: u32, value: T) {` and the first statements of its body.
  std::string function(std::string_view behind, std::string_view vector, std::string_view begin) {
    std::string parameter;
    if (store_.value) {
      const std::string_view type = wgsl_storage_type(*store_.value);
      parameter = vector.empty() ? fmt::format(", value: {}", type)
                                 : fmt::format(", value: {}<{}>", vector, type);
    }
    return fmt::format("fn {}{}(index: u32{}) {{\n{}", store_.name, behind, parameter, begin);
  }

  /// `fn kiln_compute(v0: T, ...) -> KilnResults`. Its arguments have the types of computing, its
  /// members y0, y1, ... those of storage.
  std::string compute() {
    std::vector<DType> inputs;
    if (store_.value) inputs.push_back(*store_.value);
    for (const StoredArray& array : store_.operands) inputs.push_back(array.dtype);
    std::vector<std::string> names;
    std::vector<std::string> parameters;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool indexed = store_.body.indexed[i];
      names.push_back(indexed ? store_.operands[i - first_operand()].name : fmt::format("v{}", i));
      if (!indexed) parameters.push_back(fmt::format("v{}: {}", i, wgsl_compute_type(inputs[i])));
    }
    each_place(0, "", [&](const std::string& name, std::string_view type, const std::string&) {
      parameters.push_back(fmt::format("{}: {}", name, type));
    });
    const WgslBody printed =
        print_wgsl(store_.op, store_.body, store_.types, names, store_.param_prefix, "t");
    helpers_.insert(printed.helpers.begin(), printed.helpers.end());
    std::string fields;
    std::string results;
    for (std::size_t r = 0; r < store_.results.size(); ++r) {
      const DType dtype = store_.results[r].dtype;
      fields += fmt::format("y{}: {}, ", r, wgsl_storage_type(dtype));
      results +=
          (r == 0 ? "" : ", ") + wgsl_store(store_.types.roots[r], dtype, printed.results[r]);
    }
    return fmt::format(
        "struct KilnResults {{ {}}}\n"
        "fn kiln_compute({}) -> KilnResults {{\n{}  return KilnResults({});\n}}\n",
        fields, fmt::join(parameters, ", "), printed.statements, results);
  }

  /// The number of the first operand among the body's inputs.
  std::size_t first_operand() const { return store_.value ? 1 : 0; }

  template <class F>
  void each_place(int lane, std::string_view index, F f) const {
    for (const Reads* reads : store_.reads) reads->each_place(lane, index, f);
  }

  std::string coordinates() const {
    std::string text;
    for (const Reads* reads : store_.reads) text += reads->coordinates();
    return text;
  }

  /// Calls f(i, reads, j): operand i is number j of those that `reads` describes. The results come
  /// after the operands.
  template <class F>
  void each_read(F f) const {
    std::size_t i = 0;
    for (const Reads* reads : store_.reads) {
      for (std::size_t j = 0; j < reads->size(); ++j) f(i++, *reads, j);
    }
  }
  template <class F>
  void each_operand(F f) const {
    each_read([&](std::size_t i, const Reads& reads, std::size_t j) {
      if (i < store_.operands.size()) f(i, reads, j);
    });
  }

  /// The value before the body, as a load would give it.
  std::string as_stored(std::string_view value) const {
    return wgsl_rounded(*store_.value, wgsl_load(*store_.value, value), helpers_);
  }

  bool is_quad(std::size_t i, const Reads& reads, std::size_t j) const {
    return store_.operands[i].vec4 && reads.is_quad(j);
  }

  /// The arguments for the result `lane` of a step. With `quads`, whole vec4s were loaded.
  std::string arguments(std::string_view value, int step, int lane, bool quads) const {
    std::vector<std::string> all;
    if (store_.value) all.push_back(as_stored(value));
    each_operand([&](std::size_t i, const Reads& reads, std::size_t j) {
      if (store_.body.indexed[i + first_operand()]) return;
      const StoredArray& array = store_.operands[i];
      const std::string stored = quads && is_quad(i, reads, j)
                                     ? fmt::format("q{}{}[{}]", i, suffix(step), lane)
                                     : element_of(array, reads.position(j, lane, index_of(step)));
      all.push_back(wgsl_load(array.dtype, stored));
    });
    each_place(lane, index_of(step),
               [&](const std::string&, std::string_view, const std::string& there) {
                 all.push_back(there);
               });
    return fmt::format("{}", fmt::join(all, ", "));
  }

  std::string result(int step, int lane, bool quads = false) const {
    return fmt::format("  let z{}{} = kiln_compute({});\n", lane, suffix(step),
                       arguments(fmt::format("value[{}]", lane), step, lane, quads));
  }

  std::string one_element() const {
    return fmt::format(
        "fn kiln_element(index: u32, value: {}) -> KilnResults {{\n{}  return "
        "kiln_compute({});\n}}\n",
        wgsl_storage_type(*store_.value), coordinates(), arguments("value", 0, 0, false));
  }

  static std::string lanes_one_by_one() {
    std::string text;
    for (int lane = 0; lane < 4; ++lane)
      text += fmt::format("  let z{0} = kiln_element(index + {0}u, value[{0}]);\n", lane);
    return text;
  }

  std::string lanes_at_once() const {
    std::string text = coordinates();
    for (int step = 1; step < store_.steps.count; ++step) {
      text += fmt::format("  let {} = min(index + {}u, {} - 4u);\n", index_of(step), distance(step),
                          store_.steps.end);
    }
    for (int step = 0; step < store_.steps.count; ++step) {
      each_operand([&](std::size_t i, const Reads& reads, std::size_t j) {
        if (is_quad(i, reads, j))
          text += fmt::format("  let q{}{} = {}[({}) / 4u];\n", i, suffix(step),
                              store_.operands[i].name, reads.position(j, 0, index_of(step)));
      });
    }
    for (int step = 0; step < store_.steps.count; ++step) {
      for (int lane = 0; lane < 4; ++lane) text += result(step, lane, true);
    }
    return text;
  }

  std::uint32_t distance(int step) const {
    return static_cast<std::uint32_t>(step) * store_.steps.apart;
  }

  /// Where the result's element is for `lane` of a step.
  std::string place(std::size_t r, int step, int lane) const {
    std::string place = index_of(step);
    if (lane > 0) place += fmt::format(" + {}u", lane);
    each_read([&](std::size_t i, const Reads& reads, std::size_t j) {
      if (i == store_.operands.size() + r) place = reads.position(j, lane, index_of(step));
    });
    return place;
  }

  std::string put(std::size_t r, int step, int lane) const {
    return fmt::format("  {} = z{}{}.y{};\n", element_of(store_.results[r], place(r, step, lane)),
                       lane, suffix(step), r);
  }

  std::string put_lanes() const {
    std::string text;
    for (int step = 0; step < store_.steps.count; ++step) {
      if (step > 0)
        text += fmt::format("  if (index + {}u < {}) {{\n", distance(step), store_.steps.end);
      for (std::size_t r = 0; r < store_.results.size(); ++r) {
        const StoredArray& array = store_.results[r];
        if (!array.vec4) {
          for (int lane = 0; lane < 4; ++lane) text += put(r, step, lane);
          continue;
        }
        text += fmt::format(
            "  {0}[({1}) / 4u] = vec4<{2}>(z0{4}.y{3}, z1{4}.y{3}, z2{4}.y{3}, z3{4}.y{3});\n",
            array.name, place(r, step, 0), wgsl_storage_type(array.dtype), r, suffix(step));
      }
      if (step > 0) text += "  }\n";
    }
    return text;
  }

  const ComputedStore& store_;
  std::set<std::string>& helpers_;
};

}  // namespace

std::string element_of(const StoredArray& array, std::string_view index) {
  return array.vec4 ? fmt::format("{0}[({1}) / 4u][({1}) % 4u]", array.name, index)
                    : fmt::format("{}[{}]", array.name, index);
}

std::string declare_array(KernelId& id, std::uint32_t group, std::uint32_t binding, Access access,
                          const StoredArray& array) {
  id.bindings.push_back({group, binding, access});
  std::string type(wgsl_storage_type(array.dtype));
  if (array.vec4) type = fmt::format("vec4<{}>", type);
  if (array.atomic) type = fmt::format("atomic<{}>", type);
  return fmt::format("@group({}) @binding({}) var<storage, {}> {}: array<{}>;\n", group, binding,
                     access == Access::read ? "read" : "read_write", array.name, type);
}

std::string enable_f16(std::string_view declarations) {
  return mentions(declarations, "f16") ? "enable f16; " : "";
}

std::string plain_store(std::string_view name, const StoredArray& array, bool four) {
  const std::string_view type = wgsl_storage_type(array.dtype);
  std::string text = fmt::format("fn {}(index: u32, value: {}) {{ {} = value; }}\n", name, type,
                                 element_of(array, "index"));
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

bool reads_by_four(std::span<const Reads* const> reads, bool aligned) {
  return aligned && std::ranges::all_of(reads, [](const Reads* r) { return r->by_four(); });
}

}  // namespace kiln::dispatch::wgsl
