// Rules `element`: operations that say where their elements come from.
#include <optional>

#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

/// Where the element at coordinate c of an axis comes from.
enum class From : std::uint8_t {
  flip,    ///< the other end
  roll,    ///< c - a, modulo the size
  pad,     ///< c - a, of an axis that is a + b longer (or shorter); else `fill`
  every,   ///< a * c
  spread,  ///< c / a where it divides, of an axis of size b; else 0
  lower,   ///< c itself, where it is at most the coordinate along axis a; else 0
  count
};

struct Moved {
  static constexpr std::string_view name = "fuzz_moved";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  From from;
  int axis;
  int a;
  int b;
  Param fill;

  TensorSpec output(const TensorSpec& x) const {
    TensorSpec out = x;
    if (from == From::pad) out.shape[axis] += a + b;
    if (from == From::every) out.shape[axis] = (x.shape[axis] + a - 1) / a;
    if (from == From::spread) out.shape[axis] = b;
    return out;
  }

  Expr element(const At& at, const Elements& x) const {
    const Expr c = at[axis];
    switch (from) {
      case From::flip:
        return x(at.with(axis, at.size(axis) - 1 - c));
      case From::roll:
        return x(at.with(axis, mod(c - at.number(a), x.size(axis))));
      case From::pad:
        return x(at.with(axis, c - at.number(a))).or_else(fill);
      case From::every:
        return x(at.with(axis, c * at.number(a)));
      case From::spread:
        return select(mod(c, at.number(a)) == 0, x(at.with(axis, floor_div(c, at.number(a)))), 0);
      default:
        return select(c <= at[a], x(at), 0);
    }
  }

  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) const {
    Moved back = *this;
    back.fill = 0;
    if (from == From::roll) back.a = -a;
    if (from == From::pad) std::tie(back.a, back.b) = std::pair(-a, -b);
    if (from == From::every) std::tie(back.from, back.b) = std::pair(From::spread, b);
    if (from == From::spread) back.from = From::every;
    grads[0].set(apply(back, grad));
  }
};
static_assert(Extension<Moved>);

/// The same with the gradient that is derived.
struct DerivedMoved {
  static constexpr std::string_view name = "fuzz_derived_moved";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Moved how;
  TensorSpec output(const TensorSpec& x) const { return how.output(x); }
  Expr element(const At& at, const Elements& x) const { return how.element(at, x); }
};
static_assert(Extension<DerivedMoved>);

/// Where the model finds it; nothing where the element is another number.
std::optional<std::int64_t> source(From from, std::int64_t c, std::int64_t a, std::int64_t size) {
  const auto within = [&](std::int64_t i) {
    return i >= 0 && i < size ? std::optional(i) : std::nullopt;
  };
  switch (from) {
    case From::flip:
      return size - 1 - c;
    case From::roll:
      return ((c - a) % size + size) % size;
    case From::pad:
      return within(c - a);
    case From::every:
      return within(c * a);
    case From::spread:
      return c % a == 0 ? within(c / a) : std::nullopt;
    default:
      return c;
  }
}

Moved moved(const Step& s) {
  return {static_cast<From>(s.ints[0]), static_cast<int>(s.ints[1]), static_cast<int>(s.ints[2]),
          static_cast<int>(s.ints[3]), s.numbers[0]};
}

bool draw_moved(Draw& d, Step& s) {
  if (!draw_one(all_dtypes, 1)(d, s)) return false;
  const TensorSpec& spec = d.at(s.in[0]).spec;
  const int axis = d.below(spec.shape.rank());
  const std::int64_t size = spec.shape[axis];
  const auto from = static_cast<From>(d.below(static_cast<int>(From::count)));
  s.ints = {static_cast<std::int64_t>(from), axis, 1, 0};
  s.numbers = {0};
  if (from == From::roll) s.ints[2] = d.below(15) - 7;
  if (from == From::every || from == From::spread) s.ints[2] = 1 + d.below(3);
  if (from == From::every) s.ints[3] = size;
  // Only such sizes have a gradient by the other rule.
  if (from == From::spread)
    s.ints[3] = std::max<std::int64_t>(size * s.ints[2] - d.below(static_cast<int>(s.ints[2])), 0);
  if (from == From::lower) s.ints[2] = d.below(spec.shape.rank());
  if (from == From::pad) {
    s.ints[2] = d.below(5) - 2;
    s.ints[3] = d.below(5) - 2;
    if (size + s.ints[2] + s.ints[3] < 0) return false;
    s.numbers = {static_cast<double>(d.below(2))};
  }
  if (from == From::spread && size == 0) return false;
  return moved(s).output(spec).shape.elements() <= most_elements;
}

std::vector<Array> model_moved(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  const Moved op = moved(s);
  Array out{.spec = op.output(x.spec)};
  const Id fill = m.scalars().given(op.from == From::pad ? s.numbers[0] : 0, x.spec.dtype);
  for_each_index(out.spec.shape, [&](auto index) {
    const auto there = source(op.from, index[at(op.axis)], op.a, x.spec.shape[op.axis]);
    const bool above = op.from == From::lower && index[at(op.axis)] > index[at(op.a)];
    if (!there || above) return out.ids.push_back(fill);
    index[at(op.axis)] = *there;
    out.ids.push_back(broadcast_element(x, x.spec.shape, index));
  });
  return {out};
}

/// Elements of x at the numbers in `at`, along the first axis; 0 for numbers outside.
struct Taken {
  static constexpr std::string_view name = "fuzz_taken";
  static constexpr std::array inputs = {"x", "where"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& x, const TensorSpec& where) {
    TensorSpec out = x;
    out.shape[0] = where.shape[0];
    return out;
  }
  static Expr element(const At& at, const Elements& x, const Elements& where) {
    return x(at.with(0, where(at[0])));
  }
};
static_assert(Extension<Taken>);

bool draw_taken(Draw& d, Step& s) {
  if (!draw_one(all_dtypes, 1)(d, s)) return false;
  const Array& x = d.at(s.in[0]);
  const int where = d.pick([&](const Array& a) {
    return a.spec.dtype == DType::i32 && a.spec.shape.rank() == 1 && a.device == x.device;
  });
  const int device = x.device;
  // Which element a float's gradient goes to must be known.
  s.in.push_back(where >= 0 && d.chance(60) && !is_float(x.spec.dtype)
                     ? where
                     : d.input(Shape{d.one_of({1, 3, 4, 5})}, DType::i32, device, -1, 5));
  return Taken::output(d.at(s.in[0]).spec, d.at(s.in[1]).spec).shape.elements() <= most_elements;
}

std::vector<Array> model_taken(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  const Array& where = m.at(s.in[1]);
  Array out{.spec = Taken::output(x.spec, where.spec)};
  const Id zero = m.scalars().given(0, x.spec.dtype);
  // Which element it is, is known only where the number is.
  const Id unknown = m.scalars().given(0, x.spec.dtype, std::numeric_limits<double>::infinity());
  for_each_index(out.spec.shape, [&](auto index) {
    const Id number = where.ids[at(index[0])];
    const double there = m.scalars().value(number);
    if (m.scalars().error(number) != 0) return out.ids.push_back(unknown);
    if (there < 0 || there >= static_cast<double>(x.spec.shape[0])) return out.ids.push_back(zero);
    index[0] = static_cast<std::int64_t>(there);
    out.ids.push_back(broadcast_element(x, x.spec.shape, index));
  });
  return {out};
}

/// x[c - 1] + 2 x[c] + its own number, along the last axis: reads in place and elsewhere.
struct Blurred {
  static constexpr std::string_view name = "fuzz_blurred";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return x(at.with(-1, at[-1] - 1)) + x(at) * 2 + cast(at.position(), x.dtype());
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    const AnyTensor wide = cast(grad, DType::f32);
    const AnyTensor later = apply(Moved{From::pad, grad.rank() - 1, -1, 1, 0}, wide);
    grads[0].set(cast(later + wide * 2.0, grad.dtype()));
  }
};
static_assert(Extension<Blurred>);

struct DerivedBlurred {
  static constexpr std::string_view name = "fuzz_derived_blurred";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) { return Blurred::element(at, x); }
};
static_assert(Extension<DerivedBlurred>);

std::vector<Array> model_blurred(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  const DType d = x.spec.dtype;
  const DType wide = is_float(d) ? DType::f32 : d;
  Array out{.spec = x.spec};
  Scalars& k = m.scalars();
  const auto widened = [&](Id id) { return d == wide ? id : k.make(Fn::cast, wide, id); };
  std::int64_t number = 0;
  for_each_index(x.spec.shape, [&](const auto& index) {
    const int last = x.spec.shape.rank() - 1;
    const Id own = widened(x.ids[at(number)]);
    const Id before = index[at(last)] > 0 ? widened(x.ids[at(number - 1)]) : k.given(0, wide);
    const Id twice = k.make(Fn::mul, wide, own, k.given(2, wide));
    const Id both = k.make(Fn::add, wide, before, twice);
    const Id all = k.make(Fn::add, wide, both, k.given(static_cast<double>(number), wide));
    out.ids.push_back(d == wide ? all : k.make(Fn::cast, d, all));
    ++number;
  });
  return {out};
}

}  // namespace

void add_places(std::vector<Operation>& to) {
  to.push_back({"moved", 24, draw_moved, model_moved,
                [](Run&, const Step& s, auto in) { return one(apply(moved(s), in[0])); }});
  to.push_back({"derived_moved", 14, draw_moved, model_moved, [](Run&, const Step& s, auto in) {
                  return one(apply(DerivedMoved{moved(s)}, in[0]));
                }});
  to.push_back({"derived_blurred", 8, draw_one(numbers, 1), model_blurred,
                [](Run&, const Step&, auto in) { return one(apply(DerivedBlurred{}, in[0])); }});
  to.push_back({"taken", 10, draw_taken, model_taken,
                [](Run&, const Step&, auto in) { return one(apply(Taken{}, in[0], in[1])); }});
  to.push_back({"blurred", 10, draw_one(numbers, 1), model_blurred,
                [](Run&, const Step&, auto in) { return one(apply(Blurred{}, in[0])); }});
}

}  // namespace kiln::fuzz
