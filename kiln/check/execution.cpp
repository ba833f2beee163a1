#include "kiln/check/execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kiln/autodiff/gradients.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/support/error.hpp"

namespace kiln::check {
namespace {

using dispatch::PoisonOutputs;

/// The poison of what is given to the operation: also a signalling NaN, but another one than that
/// of its results.
constexpr std::uint32_t given_pattern = 0x7fa1'beef;

std::string name_of(const std::vector<std::string>& names, std::size_t i,
                    std::string_view otherwise) {
  return i < names.size() ? names[i] : std::string(otherwise);
}

Device device_for(const Device& given, const Setup& setup) {
  const Device device = setup.mode == Setup::Mode::lazy    ? given.lazy()
                        : setup.mode == Setup::Mode::eager ? given.eager()
                                                           : given;
  return setup.tracked.empty() ? device.plain() : device.autodiff(setup.checkpointing);
}

class OpRun {
 public:
  OpRun(const CheckedOp& op, const Device& device, const HostArrays& in, const HostArrays& seeds,
        const Setup& setup)
      : op_(op), in_(in), seeds_(seeds), setup_(setup), device_(device_for(device, setup)) {}

  Outcome run() && {
    result_.tracked = setup_.tracked;
    if (forward() && !setup_.tracked.empty()) backward();
    if (result_.forward_error.empty()) look_at_memory();
    return std::move(result_);
  }

 private:
  bool wanted(std::size_t i) const { return i < setup_.tracked.size() && setup_.tracked[i]; }

  bool forward() {
    try {
      make_inputs();
      // The neighbour before it keeps the values, which may have to lie in a range. The one after
      // it changes them, so that it shows if it is applied too early or twice.
      const std::vector<AnyTensor> given =
          chained(leaves_, [](const AnyTensor& t) { return t * 1.0; });
      out_ = chained(op_.run(given), [](const AnyTensor& t) { return t * 1.5 - 0.25; });
      for (std::size_t i = 0; i < out_.size(); ++i) {
        result_.out.push_back(download(out_[i]));
        note_unwritten(result_.out[i], name_of(op_.outputs, i, "out"));
      }
      return true;
    } catch (const ShapeError& error) {
      result_.wrong_spec = true;
      result_.forward_error = error.what();
    } catch (const DTypeError& error) {
      result_.wrong_spec = true;
      result_.forward_error = error.what();
    } catch (const std::exception& error) {
      result_.forward_error = error.what();
    }
    return false;
  }

  void make_inputs() {
    const PoisonOutputs poison(given_pattern);
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const Form form = i < setup_.forms.size() ? setup_.forms[i] : Form{};
      const AnyTensor t = upload(in_[i], in_[i].spec.dtype, form, device_);
      leaves_.push_back(wanted(i) ? t.require_grad() : t);
    }
    if (setup_.shared) leaves_[setup_.shared->second] = leaves_[setup_.shared->first];
    given_.insert(given_.end(), poison.allocations().begin(), poison.allocations().end());
  }

  std::vector<AnyTensor> chained(const std::vector<AnyTensor>& tensors,
                                 AnyTensor (*neighbour)(const AnyTensor&)) const {
    if (!setup_.in_a_chain) return tensors;
    std::vector<AnyTensor> through;
    for (const AnyTensor& t : tensors) through.push_back(is_float(t.dtype()) ? neighbour(t) : t);
    return through;
  }

  void backward() {
    try {
      std::vector<AnyTensor> outs;
      const std::vector<AnyTensor> weights = make_weights(outs);
      out_.clear();
      const Gradients found = vjp(outs, weights);
      for (std::size_t i = 0; i < leaves_.size(); ++i) {
        result_.gradients.emplace_back();
        if (!wanted(i)) continue;
        HostArray& gradient = result_.gradients.back();
        if (found.contains(leaves_[i])) {
          gradient = download(found.of(leaves_[i]));
          note_unwritten(gradient, "the gradient of " + op_.inputs[i]);
        } else {
          gradient = {in_[i].spec, std::vector<double>(in_[i].values.size())};
        }
      }
    } catch (const std::exception& error) {
      result_.backward_error = error.what();
    }
  }

  /// The incoming gradients of the results that have one.
  std::vector<AnyTensor> make_weights(std::vector<AnyTensor>& outs) {
    const PoisonOutputs poison(given_pattern);
    std::vector<AnyTensor> weights;
    for (std::size_t i = 0; i < out_.size() && i < seeds_.size(); ++i) {
      if (!is_float(out_[i].dtype())) continue;
      outs.push_back(out_[i]);
      weights.push_back(upload(seeds_[i], out_[i].dtype(), setup_.seed_form, device_.plain()));
    }
    given_.insert(given_.end(), poison.allocations().begin(), poison.allocations().end());
    return weights;
  }

  void note_unwritten(const HostArray& array, const std::string& what) {
    if (array.unwritten < 0 || !result_.memory_error.empty()) return;
    result_.memory_error =
        fmt::format("{}{} was never written", what, index_text(array.spec.shape, array.unwritten));
  }

  void look_at_memory() {
    try {
      // A copy, because reading the inputs back allocates, too.
      const std::vector<PoisonOutputs::Allocation> made = poison_.allocations();
      for (const auto& allocation : made) {
        if (result_.memory_error.empty())
          result_.memory_error = damage(allocation, PoisonOutputs::pattern);
      }
      for (const auto& allocation : given_) {
        if (result_.memory_error.empty()) result_.memory_error = damage(allocation, given_pattern);
      }
      for (std::size_t i = 0; i < leaves_.size() && result_.memory_error.empty(); ++i) {
        const std::size_t from =
            setup_.shared && setup_.shared->second == i ? setup_.shared->first : i;
        const Comparison c = compare(download(leaves_[i].detach()), in_[from], {});
        if (c.pass()) continue;
        result_.memory_error =
            fmt::format("input {}{} was changed from {} to {}", op_.inputs[i],
                        index_text(in_[i].spec.shape, c.worst), c.expected, c.actual);
      }
    } catch (const std::exception& error) {
      result_.memory_error = error.what();
    }
  }

  /// What was written after the elements of one allocation.
  std::string damage(const PoisonOutputs::Allocation& made, std::uint32_t pattern) const {
    const std::uint64_t begin = (dispatch::bytes_of(made.spec) + 3) / 4 * 4;
    const auto bytes =
        device_.runtime().read(made.buffer, begin, made.buffer->size() - begin).get();
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i, 4);
      if (word == pattern) continue;
      const std::uint64_t first = (begin + i) / size_of(made.spec.dtype);
      return fmt::format("written outside of {} (allocated by {}): at element {}, {} past the last",
                         to_string(made.spec), made.op, first,
                         first + 1 - static_cast<std::uint64_t>(made.spec.shape.elements()));
    }
    return {};
  }

  const CheckedOp& op_;
  const HostArrays& in_;
  const HostArrays& seeds_;
  const Setup& setup_;
  Device device_;
  PoisonOutputs poison_;
  std::vector<PoisonOutputs::Allocation> given_;  ///< inputs and incoming gradients
  std::vector<AnyTensor> leaves_;
  std::vector<AnyTensor> out_;
  Outcome result_;
};

}  // namespace

Outcome execute(const CheckedOp& op, const Device& device, const HostArrays& in,
                const HostArrays& seeds, const Setup& setup) {
  return OpRun(op, device, in, seeds, setup).run();
}

}  // namespace kiln::check
