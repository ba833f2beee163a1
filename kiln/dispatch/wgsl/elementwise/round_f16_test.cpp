// Rounding to f16 inside a kernel, where nothing is stored as f16.
#include <bit>
#include <limits>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"
#include "kiln/support/float16.hpp"

namespace kiln::dispatch::wgsl {
namespace {

TEST(RoundF16, IsThatOfTheType) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x{0,     -0.0F,    1,        2049,     2051,   65504,      65519.9F,
                       65520, -65520,   1e30F,    inf,      -inf,   6.1e-5F,    6.0e-5F,
                       3e-8F, 2.98e-8F, -4.5e-8F, 5.96e-8F, 1e-10F, 1.0009765F, -0.3333333F};
  // Both sides of every step between two halves, and the middle.
  for (std::uint32_t half = 1; half < 0x7c00U; half += 37) {
    const auto low = static_cast<float>(std::bit_cast<float16>(static_cast<std::uint16_t>(half)));
    const auto high =
        static_cast<float>(std::bit_cast<float16>(static_cast<std::uint16_t>(half + 1)));
    if (high == inf) break;
    const float middle = low + (high - low) / 2;
    x.insert(x.end(), {low, middle, std::nextafter(middle, 0.0F), -std::nextafter(middle, inf)});
  }
  const Client client(test::device().shared_runtime(), "test");
  const RawTensor in = client.create(std::span<const float>(x), {std::ssize(x)});
  const BodyPtr body = body_of([](Expr v) { return cast(cast(v, DType::f16), DType::f32); });
  const RawTensor out =
      run_elementwise("round", in.runtime, body, {}, {&in, 1}, in.shape(), std::array{DType::f32})
          .front();
  const std::vector<float> rounded = client.read<float>(out);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto expected = static_cast<float>(float16(x[i]));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded[i]), std::bit_cast<std::uint32_t>(expected))
        << x[i];
  }
}

}  // namespace
}  // namespace kiln::dispatch::wgsl
