#include "kiln/dispatch/wgsl/reduction/reduction_kernel.hpp"

#include <fmt/ranges.h>

#include "kiln/kernel/source_template.hpp"
#include "reduce_columns_wgsl.hpp"
#include "reduce_rows_wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

bool is_arg(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

/// The text that adds the steps of all coordinates in an operand to a sum.
std::string steps(std::string_view prefix, std::size_t operand, const CoalescedAxes& axes) {
  std::string text;
  for (std::size_t axis = 0; axis < axes.rank; ++axis) text += step(prefix, operand, axis);
  return text;
}

class ReductionText {
 public:
  ReductionText(const ReductionLaunch& pass, const ReductionTypes& types)
      : pass_(pass), types_(types) {}

  KernelId run(const Limits& limits) && {
    const std::string arrays = declare_arrays();
    Metadata metadata;
    each_number(pass_, types_.before, [&](auto name, std::string_view type, std::uint32_t word) {
      metadata.add(name(), type, word);
    });
    pass_.store.add_numbers(metadata, types_.epilogue);
    const std::string functions = value() + item_type() + place() + load("load", "", "") + store();
    metadata.add_zero_for(helpers_);
    const std::string params =
        metadata.declare(limits, 0, static_cast<std::uint32_t>(id_.bindings.size()), id_);
    const std::string declarations = arrays + params + wgsl_helpers(helpers_) + functions;
    const SourceTemplate source(pass_.variant == Variant::rows ? reduce_rows_wgsl
                                                               : reduce_columns_wgsl);
    const SourceTemplate::Variables variables{{"declarations", declarations},
                                              {"workgroup_size_x", std::to_string(pass_.workgroup)},
                                              {"lanes", std::to_string(pass_.lanes)},
                                              {"width", std::to_string(pass_.width)}};
    id_.workgroup = {pass_.workgroup, 1, 1};
    id_.trusted = true;  // every index is below the sizes for which the operands were laid out
    id_.source = enable_f16(declarations) + source.render({}, variables).text;
    return std::move(id_);
  }

 private:
  std::string declare_arrays() {
    std::string text;
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < pass_.inputs.size(); ++i) {
      text += declare_array(
          id_, 0, next++, Access::read,
          {fmt::format("x{}", i), pass_.inputs[i].dtype, pass_.reach[i] == Reach::quad});
    }
    text += pass_.store.declare_inputs(id_, 0, next);
    return text + pass_.store.declare_results(id_, 0, next);
  }

  /// The element that is combined, as a function of the stored elements of the inputs.
  std::string value() {
    std::vector<std::string> parameters;
    std::vector<std::string> loaded;
    for (std::size_t i = 0; i < pass_.inputs.size(); ++i) {
      const DType dtype = pass_.inputs[i].dtype;
      if (pass_.is_indexed(i)) {
        loaded.push_back(fmt::format("x{}", i));
        continue;
      }
      parameters.push_back(fmt::format("v{}: {}", i, wgsl_storage_type(dtype)));
      loaded.push_back(wgsl_load(dtype, fmt::format("v{}", i)));
    }
    for (const KnownPlaces* places : {&pass_.kept_places, &pass_.reduced_places}) {
      places->each_used([&](int axis, std::size_t) {
        parameters.push_back(fmt::format("{}{}: i32", wgsl_coordinate, axis));
      });
    }
    std::string statements;
    std::string result = pass_.before ? std::string() : loaded[0];
    if (pass_.before) {
      const WgslBody printed =
          print_wgsl(pass_.op, *pass_.before, types_.before, loaded, "params.p", "t");
      helpers_.insert(printed.helpers.begin(), printed.helpers.end());
      statements = printed.statements;
      result = wgsl_load(pass_.element,
                         wgsl_store(types_.before.roots[0], pass_.element, printed.results[0]));
      result = wgsl_rounded(pass_.element, result, helpers_);
    }
    return fmt::format("fn value({}) -> {} {{\n{}  return {};\n}}\n", fmt::join(parameters, ", "),
                       wgsl_compute_type(pass_.element), statements, result);
  }

  /// The type Item, its first value, and how two are combined.
  std::string item_type() { return is_arg(pass_.combine) ? indexed_item() : plain_item(); }

  std::string plain_item() {
    const std::string_view type = wgsl_compute_type(pass_.element);
    std::string combined = "a + b";
    if (pass_.combine == Combine::max || pass_.combine == Combine::min) {
      const std::string helper =
          fmt::format("kiln_{}_{}", pass_.combine == Combine::max ? "max" : "min", type);
      helpers_.insert(helper);
      combined = helper + "(a, b)";
    }
    return fmt::format(
        "alias Item = {0};\n"
        "fn start() -> Item {{ return bitcast<{0}>(params.neutral); }}\n"
        "fn combine(a: Item, b: Item) -> Item {{ return {1}; }}\n",
        type, combined);
  }

  std::string indexed_item() {
    std::string nan;
    if (is_float(pass_.element)) {
      helpers_.insert("kiln_is_nan");
      nan =
          "  let a_nan = kiln_is_nan(a.value);\n  let b_nan = "
          "kiln_is_nan(b.value);\n"
          "  if (a_nan || b_nan) {\n"
          "    if (a_nan && b_nan && b.index < a.index) { return b; }\n"
          "    if (a_nan) { return a; }\n    return b;\n  }\n";
    }
    return fmt::format(
        "struct Item {{ value: {0}, index: u32 }}\nconst no_index = "
        "0xffffffffu;\n"
        "fn start() -> Item {{ return Item({0}(0), no_index); }}\n"
        "fn combine(a: Item, b: Item) -> Item {{\n"
        "  if (b.index == no_index) {{ return a; }}\n"
        "  if (a.index == no_index) {{ return b; }}\n{1}"
        "  if (a.value {2} b.value || (a.value == b.value && a.index < "
        "b.index)) {{ return a; }}\n"
        "  return b;\n}}\n",
        wgsl_compute_type(pass_.element), nan, pass_.combine == Combine::argmax ? '>' : '<');
  }

  /// What a job computes for each input before it walks the reduced elements:
  /// the one element, or where the elements begin.
  std::string place() const {
    std::string fields;
    std::string values;
    for (std::size_t i = 0; i < pass_.inputs.size(); ++i) {
      if (pass_.is_indexed(i)) continue;
      const std::string at = fmt::format("params.o{}{}", i, steps("k", i, pass_.kept));
      const bool fixed = pass_.reach[i] == Reach::fixed;
      const std::string_view type = fixed ? wgsl_storage_type(pass_.inputs[i].dtype) : "u32";
      fields += fmt::format(", {}{}: {}", fixed ? 'v' : 'b', i, type);
      values += fixed ? fmt::format(", x{}[{}]", i, at) : ", " + at;
    }
    pass_.kept_places.each_used([&](int axis, std::size_t k) {
      fields += fmt::format(", {}{}: i32", wgsl_coordinate, axis);
      values += fmt::format(", i32(kgc{})", k);
    });
    return fmt::format(
        "struct Place {{ output: u32{} }}\n"
        "fn place_of(output: u32) -> Place {{\n{}  return "
        "Place(output{});\n}}\n",
        fields,
        coordinates("output", "k", pass_.kept.rank) +
            place_coordinates("output", "kg", pass_.kept_places),
        values);
  }

  /// The input's element number `lane` of the step.
  std::string element(std::size_t input, int lane) const {
    switch (pass_.reach[input]) {
      case Reach::fixed:
        return fmt::format("place.v{}", input);
      case Reach::quad:
        return fmt::format("e{}[{}]", input, lane);
      default:
        return fmt::format("e{}", input);
    }
  }

  /// What value() takes for number `lane` of the step.
  std::vector<std::string> arguments_of(int lane) const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < pass_.inputs.size(); ++i) {
      if (!pass_.is_indexed(i)) all.push_back(element(i, lane));
    }
    pass_.kept_places.each_used([&](int axis, std::size_t) {
      all.push_back(fmt::format("place.{}{}", wgsl_coordinate, axis));
    });
    pass_.reduced_places.each_used([&](int, std::size_t k) {
      const bool moves = lane > 0 && k + 1 == pass_.reduced_places.axes.rank;
      all.push_back(moves ? fmt::format("i32(rgc{} | {}u)", k, lane)
                          : fmt::format("i32(rgc{})", k));
    });
    return all;
  }

  static std::string place_coordinates(std::string_view number, std::string_view prefix,
                                       const KnownPlaces& places) {
    return places.used == 0 ? std::string()
                            : coordinates(number, prefix, places.axes.rank, places.outermost);
  }

  /// Reads `width` adjacent elements and combines them to one Item. Elements of a
  /// norm are multiplied by the factor and squared first.
  std::string load(std::string_view name, std::string_view parameter,
                   std::string_view factor) const {
    std::string text = coordinates("r", "r", pass_.reduced.rank) +
                       place_coordinates("r", "rg", pass_.reduced_places);
    for (std::size_t i = 0; i < pass_.inputs.size(); ++i) {
      if (pass_.reach[i] == Reach::fixed || pass_.is_indexed(i)) continue;
      const std::string at = fmt::format("place.b{}{}", i, steps("r", i, pass_.reduced));
      const bool quad = pass_.reach[i] == Reach::quad;
      text += fmt::format("  let e{0} = x{0}[{1}];\n", i, quad ? fmt::format("({}) / 4u", at) : at);
    }
    std::array<std::string, 4> items;
    for (int lane = 0; lane < pass_.width; ++lane) {
      const std::string arguments = fmt::format("{}", fmt::join(arguments_of(lane), ", "));
      std::string& item = items[static_cast<std::size_t>(lane)];
      item = fmt::format("value({})", arguments);
      if (is_arg(pass_.combine)) item = fmt::format("Item({}, r + {}u)", item, lane);
      if (pass_.combine == Combine::norm) {
        text += fmt::format("  let v{} = {}{};\n", lane, item, factor);
        item = fmt::format("v{0} * v{0}", lane);
      }
    }
    const std::string all = pass_.width == 1
                                ? items[0]
                                : fmt::format("combine(combine({}, {}), combine({}, {}))", items[0],
                                              items[1], items[2], items[3]);
    return fmt::format("fn {}(place: Place, r: u32{}) -> Item {{\n{}  return {};\n}}\n", name,
                       parameter, text, all);
  }

  /// The root of a sum of squares. If squares were too large or too small for
  /// f32, one thread sums them again, scaled by a power of two; that is rare. It
  /// makes sums of sums, so that rounding stays small and no loop is long. The
  /// launch's scale is applied below the root, because a compiler could move the
  /// power of two past it, and the norm without the scale may be out of range.
  std::string root() const {
    return load("load_scaled", ", factor: f32", " * factor") +
           fmt::format(
               "fn root(at: u32, item: Item) -> f32 {{\n"
               "  let in_range = bitcast<u32>(item) < 0x7f800000u && item > "
               "0x1p-60f;\n"
               "  if (in_range) {{ return sqrt(item) * params.scale; }}\n"
               "  let large = item > 1.0f;\n"
               "  let place = place_of(at / params.splits);\n"
               "  var r = (at % params.splits) * params.chunk;\n"
               "  let end = r + min(params.chunk, params.count - r);\n"
               "  var sum = start();\n"
               "  while (r < end) {{\n"
               "    var part = start();\n"
               "    let stop = min(r + {0}u, end);\n"
               "    for (; r < stop; r += {1}u) {{\n"
               "      part += load_scaled(place, r, select(0x1p80f, 0x1p-80f, "
               "large));\n"
               "    }}\n"
               "    sum += part;\n"
               "  }}\n"
               "  return sqrt(sum * params.scale * params.scale) * "
               "select(0x1p-80f, 0x1p80f, "
               "large);\n}}\n",
               64 * pass_.width, pass_.width);
  }

  /// Scales a result, applies the epilogue, and stores it.
  std::string store() {
    std::string result = is_arg(pass_.combine) ? "item.index" : "item";
    if (pass_.combine == Combine::norm) {
      result = "root(at, item)";
    } else if (!is_arg(pass_.combine) && is_float(pass_.element)) {
      result += " * params.scale";
    }
    result = wgsl_store(is_arg(pass_.combine) ? DType::u32 : pass_.element, pass_.value, result);
    std::string epilogue = pass_.store.functions(types_.epilogue, helpers_);
    if (pass_.combine == Combine::norm) epilogue += root();
    return epilogue +
           fmt::format("fn store(at: u32, item: Item) {{ epilogue(at, {}); }}\n", result);
  }

  const ReductionLaunch& pass_;
  const ReductionTypes& types_;
  KernelId id_;
  std::set<std::string> helpers_;
};

}  // namespace

KernelId reduction_kernel(const ReductionLaunch& pass, const ReductionTypes& types,
                          const Limits& limits) {
  return ReductionText(pass, types).run(limits);
}

}  // namespace kiln::dispatch::wgsl
