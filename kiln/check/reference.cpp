#include "kiln/check/reference.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "kiln/autodiff/gradients.hpp"
#include "kiln/ops/create/create.hpp"

namespace kiln::check {
namespace {

DType computed_in(DType dtype) { return is_float(dtype) ? DType::f32 : dtype; }

HostArray zeros_like(const HostArray& array) {
  return {{array.spec.shape, computed_in(array.spec.dtype)},
          std::vector<double>(array.values.size())};
}

std::vector<AnyTensor> upload_all(const HostArrays& in, const Device& device) {
  std::vector<AnyTensor> tensors;
  for (const HostArray& a : in) {
    const AnyTensor t = upload(a, computed_in(a.spec.dtype), {}, device);
    tensors.push_back(device.has_autodiff() && is_float(t.dtype()) ? t.require_grad() : t);
  }
  return tensors;
}

HostArrays tensor_gradients(const TensorFunction& reference, const Device& device,
                            const HostArrays& in, const HostArrays& seeds) {
  const std::vector<AnyTensor> leaves = upload_all(in, device.autodiff());
  const std::vector<AnyTensor> results = reference(leaves);
  std::vector<AnyTensor> outs;
  std::vector<AnyTensor> weights;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!is_float(results[i].dtype())) continue;
    outs.push_back(results[i]);
    weights.push_back(upload(seeds[i], DType::f32, {}, device.plain()));
  }
  const Gradients found = vjp(outs, weights);
  HostArrays gradients;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_float(in[i].spec.dtype)) {
      gradients.emplace_back();
    } else {
      gradients.push_back(found.contains(leaves[i]) ? download(found.of(leaves[i]))
                                                    : zeros_like(in[i]));
    }
  }
  return gradients;
}

Reference of_tensors(const TensorFunction& reference, const Device& device) {
  return {
      .values =
          [=](const HostArrays& in) {
            HostArrays out;
            for (const AnyTensor& t : reference(upload_all(in, device.plain())))
              out.push_back(download(t));
            return out;
          },
      .gradients =
          [=](const HostArrays& in, const HostArrays& seeds) {
            return tensor_gradients(reference, device, in, seeds);
          },
      .specs =
          [=](std::span<const TensorSpec> in) {
            std::vector<AnyTensor> tensors;
            for (const TensorSpec& s : in)
              tensors.push_back(zeros(s.shape, s.dtype, device.plain()));
            std::vector<TensorSpec> specs;
            for (const AnyTensor& t : reference(tensors)) specs.push_back(t.spec());
            return specs;
          },
  };
}

/// One elementwise function over arrays, evaluated in double precision.
class HostBody {
 public:
  HostBody(const CheckedOp& op) : name_(op.name), body_(op.body), params_(op.params) {}

  std::vector<TensorSpec> specs(std::span<const TensorSpec> in) const {
    TensorSpec out;
    std::vector<DType> dtypes;
    for (const TensorSpec& s : in) {
      out.shape = broadcast(name_, out.shape, s.shape);
      dtypes.push_back(s.dtype);
    }
    out.dtype = infer_dtypes(name_, *body_, dtypes, dtypes[0]).front();
    return {out};
  }

  HostArrays values(const HostArrays& in) const {
    HostArray out{spec_of(in), {}};
    for_each(in, out.spec.shape, [&](std::span<const std::size_t>, std::vector<double>& x) {
      out.values.push_back(evaluate(*body_, 0, x, params_));
    });
    return {out};
  }

  HostArrays gradients(const HostArrays& in, const HostArrays& seeds) const {
    const BodyPtr back = adjoint(*body_);
    HostArrays out;
    for (const HostArray& a : in)
      out.push_back(is_float(a.spec.dtype) ? zeros_like(a) : HostArray{});
    std::size_t flat = 0;
    for_each(in, spec_of(in).shape, [&](std::span<const std::size_t> from, std::vector<double>& x) {
      x.push_back(evaluate(*body_, 0, x, params_));
      x.push_back(seeds[0].values[flat++]);
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (!out[i].values.empty()) out[i].values[from[i]] += evaluate(*back, i, x, params_);
      }
    });
    return out;
  }

 private:
  TensorSpec spec_of(const HostArrays& in) const {
    std::vector<TensorSpec> given;
    for (const HostArray& a : in) given.push_back({a.spec.shape, computed_in(a.spec.dtype)});
    return specs(given)[0];
  }

  /// Calls f for every element of the result with the inputs' elements and their positions.
  template <class F>
  static void for_each(const HostArrays& in, const Shape& shape, F f) {
    std::vector<Layout> layouts;
    for (const HostArray& a : in)
      layouts.push_back(Layout::dense(a.spec.shape).broadcast_to(shape));
    std::vector<std::size_t> from(in.size());
    for (std::int64_t flat = 0; flat < shape.elements(); ++flat) {
      std::vector<double> x(in.size());
      for (std::size_t i = 0; i < in.size(); ++i) {
        std::int64_t at = 0;
        std::int64_t rest = flat;
        for (int axis = shape.rank() - 1; axis >= 0; --axis) {
          at += rest % shape[axis] * layouts[i].stride(axis);
          rest /= shape[axis];
        }
        from[i] = static_cast<std::size_t>(at);
        x[i] = in[i].values[from[i]];
      }
      f(from, x);
    }
  }

  std::string name_;
  BodyPtr body_;
  std::vector<double> params_;
};

Reference of_body(const CheckedOp& op) {
  const HostBody body(op);
  return {.values = [body](const HostArrays& in) { return body.values(in); },
          .gradients = [body](const HostArrays& in,
                              const HostArrays& seeds) { return body.gradients(in, seeds); },
          .specs = [body](std::span<const TensorSpec> in) { return body.specs(in); }};
}

/// Half the step of the differences, exact in f32.
constexpr double half_step = 1.0 / 128;

/// The slope of the weighted sum at one element. NaN where a result has a kink.
class Probe {
 public:
  Probe(const Reference& reference, const HostArrays& in, const HostArrays& seeds)
      : reference_(reference), in_(in), seeds_(seeds), here_(reference.values(in)) {}

  double slope(std::size_t which, std::size_t element) {
    const double x = in_[which].values[element];
    const std::array<double, 4> offsets{-2 * half_step, -half_step, half_step, 2 * half_step};
    std::array<double, 4> at{};
    std::array<HostArrays, 4> results;
    for (std::size_t i = 0; i < 4; ++i) {
      at[i] = rounded(x + offsets[i], DType::f32);
      in_[which].values[element] = at[i];
      results[i] = reference_.values(in_);
    }
    in_[which].values[element] = x;
    double total = 0;
    for (std::size_t out = 0; out < seeds_.size(); ++out) {
      for (std::size_t j = 0; j < seeds_[out].values.size(); ++j) {
        const double y = here_[out].values[j];
        const auto rise = [&](std::size_t i) {
          return (results[i][out].values[j] - y) / (at[i] - x);
        };
        const double wide =
            (results[3][out].values[j] - results[0][out].values[j]) / (at[3] - at[0]);
        const double narrow =
            (results[2][out].values[j] - results[1][out].values[j]) / (at[2] - at[1]);
        const double bend = std::abs((rise(3) - rise(0)) - 2 * (rise(2) - rise(1)));
        const double noise = 1e-3 * (1 + std::abs(narrow)) + 32 * 6e-8 * std::abs(y) / half_step;
        if (!(bend <= noise && std::abs(wide - narrow) <= noise))
          return std::numeric_limits<double>::quiet_NaN();
        total += seeds_[out].values[j] * narrow;
      }
    }
    return total;
  }

 private:
  const Reference& reference_;
  HostArrays in_;
  const HostArrays& seeds_;
  HostArrays here_;
};

}  // namespace

Reference make_reference(const CheckedOp& op, const Device& device) {
  Reference made = op.body == nullptr ? of_tensors(op.reference, device) : of_body(op);
  for (const CheckedOp& other : op.others) made.others.push_back(make_reference(other, device));
  return made;
}

HostArrays random_seeds(const HostArrays& results, DType dtype, std::uint64_t seed) {
  HostArrays seeds;
  for (const HostArray& r : results) {
    if (is_float(r.spec.dtype)) {
      seeds.push_back(random_array({r.spec.shape, dtype}, {-1, 1}, seed + seeds.size()));
    } else {
      seeds.emplace_back();
    }
  }
  return seeds;
}

Slopes differences(const Reference& reference, const HostArrays& in, const HostArrays& seeds,
                   std::size_t which, std::int64_t samples, std::uint64_t seed) {
  const std::size_t count = in[which].values.size();
  Slopes found;
  if (count == 0 || samples <= 0) return found;
  Probe probe(reference, in, seeds);
  // Elements are picked in steps of a number that has no factor in common with the count.
  std::size_t step = (seed % count) | 1U;
  while (std::gcd(step, count) != 1) ++step;
  const std::size_t wanted = std::min(count, static_cast<std::size_t>(samples));
  const std::size_t tries = std::min(count, 4 * wanted);
  for (std::size_t i = 0; i < tries && found.elements.size() < wanted; ++i) {
    const std::size_t element = (seed + i * step) % count;
    const double slope = probe.slope(which, element);
    if (std::isnan(slope)) continue;
    found.elements.push_back(static_cast<std::int64_t>(element));
    found.values.push_back(slope);
  }
  return found;
}

}  // namespace kiln::check
