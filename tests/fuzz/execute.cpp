#include "fuzz/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kiln/support/error.hpp"

namespace kiln::fuzz {
namespace {

template <class T>
std::function<std::vector<double>()> reader(const AnyTensor& tensor) {
  auto reading = std::make_shared<Reading<T>>(tensor.read<T>());
  return [reading] {
    std::vector<double> out;
    for (const T element : reading->get())
      out.push_back(static_cast<double>(
          static_cast<std::conditional_t<std::is_same_v<T, float16>, float, T>>(element)));
    return out;
  };
}

std::function<std::vector<double>()> start_reading(const AnyTensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f32:
      return reader<float>(tensor);
    case DType::f16:
      return reader<float16>(tensor);
    case DType::i32:
      return reader<std::int32_t>(tensor);
    case DType::u32:
      return reader<std::uint32_t>(tensor);
    case DType::boolean:
      return reader<bool>(tensor);
  }
  return {};
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

std::string place(const Shape& shape, std::size_t flat) {
  std::string text = "]";
  for (int axis = shape.rank(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[axis]);
    text = fmt::format("{}{}", flat % size, text.size() > 1 ? ", " + text : text);
    flat /= size;
  }
  return "[" + text;
}

}  // namespace

std::string to_string(const Way& way) {
  return fmt::format("{}, {}", way.eager ? "eager" : "lazy",
                     way.checkpointing == Checkpointing::keep ? "keep" : "balanced");
}

Run::Run(const Model& program, std::span<const Device> devices, const Way& way, Tally& tally)
    : program_(program),
      way_(way),
      tally_(tally),
      tensors_(program.values().size()),
      there_(program.values().size()),
      last_use_(program.values().size()) {
  for (const Device& device : devices) {
    const Device adjusted = device.autodiff(way.checkpointing);
    devices_.push_back(way.eager ? adjusted.eager() : adjusted.lazy());
  }
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    for (const int value : program.steps()[i].in) last_use_[static_cast<std::size_t>(value)] = i;
  }
}

std::string Run::run() {
  for (std::size_t i = 0; i < program_.steps().size() && complaint_.empty(); ++i) step(i);
  if (complaint_.empty()) finish_later();
  return complaint_;
}

void Run::complain(const std::string& what) {
  if (complaint_.empty()) complaint_ = fmt::format("{} ({}): {}", now_, to_string(way_), what);
}

void Run::step(std::size_t number) {
  const Step& step = program_.steps()[number];
  now_ = fmt::format("step {}, {}", number, step.op->name);
  std::vector<AnyTensor> in;
  bool complete = true;
  for (const int value : step.in) {
    complete = complete && there_[static_cast<std::size_t>(value)] != 0;
    in.push_back(tensor(value));
  }
  Fate fate;
  for (const int value : step.in) fate.join(program_.at(value).fate);
  for (int value = step.first; value < step.first + step.count; ++value)
    fate.join(program_.at(value).fate);
  if (complete) {
    try {
      std::vector<AnyTensor> out = step.op->run(*this, step, in);
      if (static_cast<int>(out.size()) != step.count) {
        complain(fmt::format("gave {} results", out.size()));
        return;
      }
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t value = static_cast<std::size_t>(step.first) + i;
        there_[value] = program_.values()[value].absent ? 0 : 1;
        tensors_[value] = std::move(out[i]);
      }
      look_at_results(step);
    } catch (...) {
      const std::string message = message_of(std::current_exception());
      const bool known = std::ranges::any_of(fate.causes, [&](const std::string& cause) {
        return message.find(cause) != std::string::npos;
      });
      if (fate.sound() || !known) complain("threw: " + message);
      if (known) ++tally_.failures;
    }
  }
  in.clear();
  for (std::size_t value = 0; value < tensors_.size(); ++value) {
    if (last_use_[value] > number || (static_cast<int>(value) >= step.first + step.count)) continue;
    tensors_[value] = {};
    there_[value] = 0;
  }
}

void Run::look_at_results(const Step& step) {
  for (int value = step.first; value < step.first + step.count; ++value) {
    const Array& expected = program_.at(value);
    if (expected.absent) continue;
    const AnyTensor& got = tensor(value);
    if (got.spec() != expected.spec) {
      complain(fmt::format("v{} is {}, not {}", value, kiln::to_string(got.spec()),
                           kiln::to_string(expected.spec)));
    } else if (got.tracked() != !expected.leaves.empty()) {
      complain(fmt::format("v{} is {}tracked", value, got.tracked() ? "" : "not "));
    }
  }
}

void Run::check(int value) {
  try {
    compare(value, start_reading(tensor(value))());
  } catch (...) {
    met(value, message_of(std::current_exception()));
  }
}

void Run::check_later(int value) {
  try {
    pending_.push_back({value, start_reading(tensor(value))});
  } catch (...) {
    met(value, message_of(std::current_exception()));
  }
}

void Run::finish_later() {
  now_ = "at the end";
  for (const Pending& p : pending_) {
    try {
      compare(p.value, p.get());
    } catch (...) {
      met(p.value, message_of(std::current_exception()));
    }
  }
}

void Run::met(int value, const std::string& message) {
  const Fate& fate = program_.at(value).fate;
  if (fate.sound())
    return complain(fmt::format("v{} is right, but reading it threw: {}", value, message));
  for (const std::string& cause : fate.causes) {
    if (message.find(cause) == std::string::npos) continue;
    ++tally_.failures;
    return;
  }
  complain(fmt::format("v{} fails for another reason than '{}': {}", value, fate.causes.front(),
                       message));
}

void Run::compare(int value, const std::vector<double>& actual) {
  const Array& expected = program_.at(value);
  if (expected.fate.fails)
    return complain(
        fmt::format("v{} could be read, but '{}'", value, expected.fate.causes.front()));
  if (expected.fate.may_fail) return;
  if (actual.size() != expected.ids.size())
    return complain(
        fmt::format("v{} has {} elements, not {}", value, actual.size(), expected.ids.size()));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double right = program_.scalars().value(expected.ids[i]);
    const double error = program_.scalars().error(expected.ids[i]);
    if (std::isinf(error)) {
      ++tally_.unknown;
      continue;
    }
    ++tally_.elements;
    tally_.exact += error == 0 ? 1 : 0;
    if (actual[i] == right || (std::isnan(actual[i]) && std::isnan(right))) continue;
    if (std::abs(actual[i] - right) <= error) continue;
    complain(fmt::format("v{}{} is {:.9g}, not {:.9g}{}", value, place(expected.spec.shape, i),
                         actual[i], right, error == 0 ? "" : fmt::format(" +- {:.2g}", error)));
  }
}

}  // namespace kiln::fuzz
