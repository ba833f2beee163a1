#pragma once
/// A program as data: steps over values, each of which is known as numbers, too.
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fuzz/scalars.hpp"
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln::fuzz {

class Draw;
class Model;
class Run;
struct Step;

/// What becomes of a value where something below it goes wrong.
struct Fate {
  bool fails = false;                 ///< reading it throws one of the causes
  bool may_fail = false;              ///< it is right, or its reader gets one of the causes
  std::vector<std::string> causes{};  ///< a part of the message each
  void join(const Fate& other);
  [[nodiscard]] bool sound() const { return !fails && !may_fail; }
};

/// A tensor as the model knows it.
struct Array {
  TensorSpec spec{};
  std::vector<Id> ids{};
  std::set<int> leaves{};  ///< values marked with require_grad() that it depends on
  bool is_leaf = false;
  bool absent = false;  ///< the gradient of a leaf that nothing depends on: there is no tensor
  bool large = false;   ///< too large to compute on with
  int device = 0;
  Fate fate{};
};

/// One kind of step: how it is drawn, what it means, how kiln does it.
struct Operation {
  std::string name;
  int weight = 10;
  /// Chooses operands and numbers; false where nothing fits.
  std::function<bool(Draw&, Step&)> draw{};
  std::function<std::vector<Array>(Model&, const Step&)> model{};
  std::function<std::vector<AnyTensor>(Run&, const Step&, std::span<const AnyTensor>)> run{};
  /// Its results depend on what goes into it in the plain way: their gradient's graph, device and
  /// fate follow from its operands'.
  bool plain = true;
  /// Its slope may be 0 throughout: then gradients come back that read nothing of what comes in.
  bool flat = false;
  /// Gradients that come back through it fail, for this reason.
  std::function<std::string(const Step&)> fails_backward{};
};

struct Step {
  const Operation* op = nullptr;
  std::vector<int> in{};
  std::vector<std::int64_t> ints{};
  std::vector<double> numbers{};
  Shape shape{};
  DType dtype = DType::f32;
  int device = 0;
  int first = 0;  ///< its first result
  int count = 1;
};

/// Values by number, in the order they are made; immutable once made.
class Model {
 public:
  /// Appends a step and computes its results.
  void apply(Step step);

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] const std::vector<Array>& values() const { return values_; }
  [[nodiscard]] const Array& at(int value) const {
    return values_[static_cast<std::size_t>(value)];
  }
  [[nodiscard]] Scalars& scalars() { return scalars_; }
  [[nodiscard]] const Scalars& scalars() const { return scalars_; }
  [[nodiscard]] const Step& maker(int value) const;
  void set_large(int value) { values_[static_cast<std::size_t>(value)].large = true; }

 private:
  std::vector<Step> steps_;
  std::vector<Array> values_;
  Scalars scalars_;
};

/// The program as C++ that comes close to what was run.
std::string to_string(const Model& program);

/// Every operation there is.
const std::vector<Operation>& operations();
const Operation& operation(std::string_view name);

// The families, each in a file of its own.
void add_creation(std::vector<Operation>& to);
void add_elementwise(std::vector<Operation>& to);
void add_movement(std::vector<Operation>& to);
void add_contractions(std::vector<Operation>& to);
void add_custom(std::vector<Operation>& to);
void add_places(std::vector<Operation>& to);
void add_gradients(std::vector<Operation>& to);
void add_control(std::vector<Operation>& to);

/// Random choices while a program grows.
class Draw {
 public:
  Draw(std::uint64_t seed, int devices) : random_(seed), devices_(devices) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<int>(of.size()))];
  }

  /// A value that can be computed on and for which `fits` holds; -1 if there is none.
  int pick(const std::function<bool(const Array&)>& fits);
  /// A second operand for an elementwise operation with `value`: of its device, of `dtype`, of a
  /// shape that broadcasts with it.
  int pick_partner(int value, DType dtype);
  /// A new value of small numbers.
  int input(const Shape& shape, DType dtype, int device, int low = -4, int high = 4);
  Shape some_shape();
  int devices() const { return devices_; }
  Model& model() { return model_; }
  const Array& at(int value) const { return model_.at(value); }

  /// Appends `step`, and another one where its results are too large to go on with.
  void append(Step step);

 private:
  std::mt19937_64 random_;
  int devices_;
  Model model_;
};

/// The program number `seed`.
Model draw_program(std::uint64_t seed, int devices, int max_steps);

inline constexpr std::int64_t most_elements = 200;

}  // namespace kiln::fuzz
