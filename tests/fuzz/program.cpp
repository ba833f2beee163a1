#include "fuzz/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "kiln/support/error.hpp"

namespace kiln::fuzz {

void Fate::join(const Fate& other) {
  fails = fails || other.fails;
  may_fail = may_fail || other.may_fail;
  for (const std::string& cause : other.causes) {
    if (std::ranges::find(causes, cause) == causes.end()) causes.push_back(cause);
  }
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> made;
    for (const auto& add : {add_creation, add_elementwise, add_movement, add_contractions,
                            add_custom, add_places, add_gradients, add_control})
      add(made);
    return made;
  }();
  return all;
}

const Operation& operation(std::string_view name) {
  const auto found = std::ranges::find(operations(), name, &Operation::name);
  if (found == operations().end()) throw Error(fmt::format("fuzz: no operation '{}'", name));
  return *found;
}

void Model::apply(Step step) {
  step.first = static_cast<int>(values_.size());
  std::vector<Array> results = step.op->model ? step.op->model(*this, step) : std::vector<Array>{};
  step.count = static_cast<int>(results.size());
  if (step.op->plain) {
    for (Array& result : results) {
      for (const int i : step.in) {
        const Array& from = at(i);
        result.device = from.device;
        if (is_float(result.spec.dtype))
          result.leaves.insert(from.leaves.begin(), from.leaves.end());
        Fate fate = from.fate;
        // What has no elements is read by nobody, so what went wrong there may show or not.
        if (fate.fails && (from.ids.empty() || result.ids.empty())) {
          fate.fails = false;
          fate.may_fail = true;
        }
        result.fate.join(fate);
      }
      if (step.in.empty()) result.device = step.device;
    }
  }
  for (Array& result : results) values_.push_back(std::move(result));
  steps_.push_back(std::move(step));
}

const Step& Model::maker(int value) const {
  const auto after =
      std::ranges::upper_bound(steps_, value, {}, [](const Step& s) { return s.first; });
  // Steps without results share their first with the one behind.
  auto step = after - 1;
  while (step->count == 0) --step;
  return *step;
}

std::string to_string(const Model& program) {
  std::string text;
  const auto name = [](int value) { return fmt::format("v{}", value); };
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    const Step& step = program.steps()[i];
    std::vector<std::string> arguments;
    for (const int in : step.in) arguments.push_back(name(in));
    if (!step.numbers.empty())
      arguments.push_back(fmt::format("{{{}}}", fmt::join(step.numbers, ", ")));
    if (!step.ints.empty()) arguments.push_back(fmt::format("[{}]", fmt::join(step.ints, ", ")));
    std::vector<std::string> results;
    std::vector<std::string> specs;
    for (int k = step.first; k < step.first + step.count; ++k) {
      results.push_back(name(k));
      const Array& array = program.at(k);
      specs.push_back(kiln::to_string(array.spec) + (array.fate.fails ? " fails" : "") +
                      (array.device == 0 ? "" : " on the other device"));
    }
    text += fmt::format("{:3}  {}{}{}({}){}{}\n", i, fmt::join(results, ", "),
                        results.empty() ? "" : " = ", step.op->name, fmt::join(arguments, ", "),
                        specs.empty() ? "" : "  // ", fmt::join(specs, "; "));
  }
  return text;
}

int Draw::pick(const std::function<bool(const Array&)>& fits) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(model_.values().size()); ++i) {
    const Array& array = at(i);
    if (!array.absent && !array.large && fits(array)) found.push_back(i);
  }
  if (found.empty()) return -1;
  // The latest most often, so that programs grow deep; what fails seldom, or all would.
  for (int tries = 0; tries < 4; ++tries) {
    const int among = chance(60) ? std::min<int>(3, static_cast<int>(found.size()))
                                 : static_cast<int>(found.size());
    const int value = found[found.size() - 1 - static_cast<std::size_t>(below(among))];
    if (at(value).fate.sound() || chance(25)) return value;
  }
  return found[static_cast<std::size_t>(below(static_cast<int>(found.size())))];
}

namespace {

bool broadcasts(const Shape& a, const Shape& b) {
  for (int axis = 1; axis <= std::min(a.rank(), b.rank()); ++axis) {
    if (a[-axis] != b[-axis] && a[-axis] != 1 && b[-axis] != 1) return false;
  }
  return broadcast("fuzz", a, b).elements() <= most_elements;
}

}  // namespace

int Draw::pick_partner(int value, DType dtype) {
  const Shape shape = at(value).spec.shape;
  const int device = at(value).device;
  if (chance(85)) {
    const int found = pick([&](const Array& other) {
      return other.spec.dtype == dtype && other.device == device &&
             broadcasts(other.spec.shape, shape);
    });
    if (found >= 0) return found;
  }
  Shape part;
  for (int axis = chance(50) ? 0 : below(shape.rank() + 1); axis < shape.rank(); ++axis)
    part.push_back(chance(70) ? shape[axis] : 1);
  return input(part, dtype, device);
}

int Draw::input(const Shape& shape, DType dtype, int device, int low, int high) {
  Step step{.op = &operation("input"), .shape = shape, .dtype = dtype, .device = device};
  if (dtype == DType::u32) low = std::max(low, 0);
  const bool halves = is_float(dtype) && chance(40);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const double number = low + below(high - low + 1);
    step.numbers.push_back(dtype == DType::boolean ? below(2) : halves ? number * 0.5 : number);
  }
  if (is_float(dtype) && !step.numbers.empty() && chance(3)) {
    step.numbers[static_cast<std::size_t>(below(static_cast<int>(step.numbers.size())))] =
        std::numeric_limits<double>::quiet_NaN();
  }
  model_.apply(step);
  return model_.steps().back().first;
}

Shape Draw::some_shape() {
  Shape shape;
  const int rank = one_of({0, 1, 1, 2, 2, 2, 3, 3, 4});
  for (int axis = 0; axis < rank; ++axis) {
    if (chance(2)) {
      shape.push_back(0);
    } else {
      shape.push_back(one_of({1, 2, 3, 4, 4, 5}));
    }
  }
  return shape;
}

void Draw::append(Step step) {
  model_.apply(std::move(step));
  const Step made = model_.steps().back();
  for (int value = made.first; value < made.first + made.count; ++value) {
    const Array& array = at(value);
    const double most = array.spec.dtype == DType::f16 ? 64 : 1000;
    double size = 0;
    for (const Id id : array.ids) size = std::max(size, std::abs(model_.scalars().value(id)));
    if (size <= most || array.absent) continue;
    Step clamp{.op = &operation("clamp"), .in = {value}, .numbers = {-4, 4}};
    if (is_float(array.spec.dtype) && chance(50)) {
      clamp = {.op = &operation("mul_scalar"),
               .in = {value},
               .numbers = {std::exp2(-std::ceil(std::log2(size / 4)))}};
    } else if (array.spec.dtype == DType::u32) {
      clamp.numbers = {0, 4};
    }
    model_.set_large(value);
    if (!is_float(array.spec.dtype)) continue;
    model_.apply(clamp);
  }
}

Model draw_program(std::uint64_t seed, int devices, int max_steps) {
  Draw draw(seed * 0x9e37'79b9'7f4a'7c15 + 0x51ed'270b, devices);
  for (int i = draw.below(2); i < 3; ++i)
    draw.input(draw.some_shape(),
               i == 0 ? DType::f32 : draw.one_of({DType::f32, DType::f32, DType::f16}),
               draw.below(devices));
  int total = 0;
  for (const Operation& op : operations()) total += op.weight;
  const int steps = 3 + draw.below(max_steps);
  for (int i = 0; i < steps; ++i) {
    int at = draw.below(total);
    const Operation* op = operations().data();
    while (at >= op->weight) at -= (op++)->weight;
    Step step{.op = op};
    if (op->draw(draw, step)) draw.append(std::move(step));
  }
  // A part is looked at, in any order; the others may be fused away.
  std::vector<int> looked_at;
  const int values = static_cast<int>(draw.model().values().size());
  const int share = draw.one_of({20, 50, 100});
  for (int value = 0; value < values; ++value) {
    if (!draw.at(value).absent && (draw.chance(share) || value + 3 > values))
      looked_at.push_back(value);
  }
  while (!looked_at.empty()) {
    const auto at = looked_at.begin() + draw.below(static_cast<int>(looked_at.size()));
    draw.append({.op = &operation("read"), .in = {*at}});
    looked_at.erase(at);
  }
  return std::move(draw.model());
}

}  // namespace kiln::fuzz
