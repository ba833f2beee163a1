// What is done with values besides computing: reading them at some time, moving them, refusing.
#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

/// Calls that must throw at once, and leave everything as it was.
bool refuses(int which, const AnyTensor& x, const Device& other) {
  try {
    switch (which) {
      case 0:
        (void)reshape(x, Shape{x.shape().elements() + 1});
        break;
      case 1:
        (void)permute(x, std::vector<int>(at(x.rank() + 1), 0));
        break;
      case 2:
        (void)slice(x, 0, x.rank() == 0 ? 0 : -1 - x.shape()[0]);
        break;
      case 3:
        (void)(x +
               full(x.shape(), 0, x.dtype() == DType::i32 ? DType::u32 : DType::i32, x.device()));
        break;
      case 4:
        (void)sum(x, x.rank());
        break;
      case 5:
        (void)(x.dtype() == DType::i32 ? x.to_vector<float>().size()
                                       : x.to_vector<std::int32_t>().size());
        break;
      case 6:
        (void)gather(x, 0, full(x.shape(), 0, DType::f32, x.device()));
        break;
      case 7:
        (void)broadcast_to(x, Shape{});
        if (x.rank() == 0) return true;
        break;
      case 8: {
        const AnyTensor seed = full({7, 7, 7}, 0, x.dtype(), x.device());
        (void)vjp({&x, 1}, {&seed, 1});
        break;
      }
      case 9:
        if (other.same_as(x.device())) return true;
        (void)concat({x, full(x.shape(), 0, x.dtype(), other)}, -1);
        break;
      default:
        (void)matmul(x, full({1, 9999, 1}, 0, x.dtype(), x.device()));
        break;
    }
    return false;
  } catch (const Error&) {
    return true;
  }
}

Operation reading(std::string name, int weight, void (Run::*how)(int)) {
  return {.name = std::move(name),
          .weight = weight,
          .draw = draw_one(all_dtypes),
          .run = [how](Run& run, const Step& s, auto) {
            (run.*how)(s.in[0]);
            return std::vector<AnyTensor>();
          }};
}

}  // namespace

void add_control(std::vector<Operation>& to) {
  to.push_back(reading("read", 8, &Run::check));
  to.push_back(reading("read_later", 8, &Run::check_later));
  to.push_back({.name = "flush",
                .weight = 5,
                .draw =
                    [](Draw& d, Step& s) {
                      s.device = d.below(d.devices());
                      return true;
                    },
                .run =
                    [](Run& run, const Step& s, auto) {
                      run.device(s.device).flush();
                      return std::vector<AnyTensor>();
                    }});
  to.push_back({.name = "synchronize",
                .weight = 2,
                .draw = [](Draw&, Step&) { return true; },
                .run =
                    [](Run& run, const Step& s, auto) {
                      run.device(s.device).synchronize();
                      return std::vector<AnyTensor>();
                    }});
  to.push_back({.name = "refused",
                .weight = 8,
                .draw =
                    [](Draw& d, Step& s) {
                      s.ints = {d.below(11)};
                      return draw_one(all_dtypes)(d, s);
                    },
                .run =
                    [](Run& run, const Step& s, auto in) {
                      if (!refuses(static_cast<int>(s.ints[0]), in[0], run.devices().back()))
                        run.complain("a call that makes no sense was not refused");
                      return std::vector<AnyTensor>();
                    }});
  to.push_back(
      {.name = "to",
       .weight = 10,
       .draw =
           [](Draw& d, Step& s) {
             const int value = d.pick([](const Array& a) { return a.leaves.empty(); });
             s.in = {value};
             return value >= 0 && d.devices() > 1;
           },
       .model =
           [](Model& m, const Step& s) {
             Array out = m.at(s.in[0]);
             out.device = 1 - out.device;
             return std::vector{out};
           },
       .run = [](Run& run, const Step& s,
                 auto in) { return one(in[0].to(run.device(run.program().at(s.first).device))); },
       .plain = false});
  to.push_back({.name = "dlpack",
                .weight = 6,
                .draw =
                    [](Draw& d, Step& s) {
                      const int value = d.pick([](const Array& a) {
                        return a.leaves.empty() && a.spec.dtype != DType::boolean;
                      });
                      s.in = {value};
                      return value >= 0;
                    },
                .model = [](Model& m, const Step& s) { return std::vector{m.at(s.in[0])}; },
                .run =
                    [](Run&, const Step&, auto in) {
                      const Device& device = in[0].device();
                      if (!device.same_as(cpu::device())) return one(in[0]);
                      return one(from_dlpack(to_dlpack(in[0]), device));
                    },
                .plain = false});
}

}  // namespace kiln::fuzz
