#include <fmt/format.h>

#include <string_view>

#include "kiln/scalar/wgsl/helper_table.hpp"

namespace kiln {
namespace {

using Table = std::map<std::string, WgslHelper>;

/// Of f32. WGSL's own are right to few bits, and for small angles only.
Table circular_functions() {
  return {
      // Not written as a literal, which WGSL refuses, and by bits, which no compiler drops.
      {"kiln_nan",
       {"fn kiln_nan(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u); }\n",
        {}}},
      {"kiln_is_inf",
       {"fn kiln_is_inf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; "
        "}\n",
        {}}},
      {"kiln_with_sign",
       {"fn kiln_with_sign(size: f32, x: f32) -> f32 {\n"
        "  return bitcast<f32>((bitcast<u32>(size) & 0x7fffffffu) | (bitcast<u32>(x) & "
        "0x80000000u));\n"
        "}\n",
        {}}},
      {"kiln_mul_high",
       {"fn kiln_mul_high(a: u32, b: u32) -> u32 {\n"
        "  let low = (a & 0xffffu) * (b & 0xffffu);\n"
        "  let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);\n"
        "  let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);\n"
        "  return (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);\n"
        "}\n",
        {}}},
      // For a >= 400: r and n, with a = r + (n + 4k) pi/2. a is a whole number m times a power of
      // 2, and the product of m with those 96 bits of 2/pi, of which 94 count fractions of a
      // quarter turn, is right to 2^-70 (Payne and Hanek, 1983).
      {"kiln_far_angle",
       {"fn kiln_far_angle(a: f32) -> vec2<f32> {\n"
        "  var parts = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, "
        "0xdb629599u, 0x3c439041u, 0xfe5163abu);\n"
        "  let bits = bitcast<u32>(a);\n"
        "  let m = (bits & 0x7fffffu) | 0x800000u;\n"
        "  let first = (bits >> 23u) - 120u;\n"
        "  let i = first >> 5u;\n"
        "  let s = first & 31u;\n"
        "  let high = (parts[i] << s) | ((parts[i + 1u] >> 1u) >> (31u - s));\n"
        "  let middle = (parts[i + 1u] << s) | ((parts[i + 2u] >> 1u) >> (31u - s));\n"
        "  let low = (parts[i + 2u] << s) | ((parts[i + 3u] >> 1u) >> (31u - s));\n"
        "  let carried = kiln_mul_high(m, low);\n"
        "  let product = m * middle + carried;\n"
        "  let turns = m * high + kiln_mul_high(m, middle) + select(0u, 1u, product < carried);\n"
        "  let up = (turns << 2u) | (product >> 30u);\n"
        "  let down = product << 2u;\n"
        "  let negative = up >= 0x80000000u;\n"
        "  let size_down = select(down, ~down + 1u, negative);\n"
        "  let size_up = select(up, ~up + select(0u, 1u, down == 0u), negative);\n"
        "  let r = (f32(size_up) * 2.3283064e-10f + f32(size_down) * 5.421011e-20f) * "
        "1.5707964f;\n"
        "  return vec2<f32>(select(r, -r, negative), f32((turns + 0x20000000u) >> 30u));\n"
        "}\n",
        {"kiln_mul_high"}}},
      // For a >= 0: r and n likewise. n times the first two parts of pi/2 is exact; hidden, since
      // compilers would add up the parts.
      {"kiln_angle",
       {"fn kiln_angle(a: f32) -> vec2<f32> {\n"
        "  if (a >= 400.0f) { return kiln_far_angle(a); }\n"
        "  let n = round(a * 0.63661975f);\n"
        "  let first = kiln_hide(a - n * 1.570770263671875f);\n"
        "  let second = kiln_hide(first - n * 2.6063062250614166e-5f);\n"
        "  return vec2<f32>(second - n * 6.07710062827671e-11f, n);\n"
        "}\n",
        {"kiln_far_angle", "kiln_hide"}}},
      // |r| <= pi/4: single precision coefficients from the Cephes library's sinf.
      {"kiln_sin_near",
       {"fn kiln_sin_near(r: f32) -> f32 {\n"
        "  let s = r * r;\n"
        "  return ((-1.9515295891e-4f * s + 8.3321608736e-3f) * s - 1.6666654611e-1f) * s * r + "
        "r;\n"
        "}\n",
        {}}},
      {"kiln_cos_near",
       {"fn kiln_cos_near(r: f32) -> f32 {\n"
        "  let s = r * r;\n"
        "  let p = (2.443315711809948e-5f * s - 1.388731625493765e-3f) * s + "
        "4.166664568298827e-2f;\n"
        "  return 1.0f + (p * s * s - 0.5f * s);\n"
        "}\n",
        {}}},
      {"kiln_sin",
       {"fn kiln_sin(x: f32) -> f32 {\n"
        "  let angle = kiln_angle(abs(x));\n"
        "  let n = u32(angle.y);\n"
        "  let y = select(kiln_sin_near(angle.x), kiln_cos_near(angle.x), (n & 1u) != 0u);\n"
        "  let sign = ((n << 30u) ^ bitcast<u32>(x)) & 0x80000000u;\n"
        "  let finite = (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u;\n"
        "  return select(kiln_nan(x), bitcast<f32>(bitcast<u32>(y) ^ sign), finite);\n"
        "}\n",
        {"kiln_angle", "kiln_sin_near", "kiln_cos_near", "kiln_nan"}}},
      {"kiln_cos",
       {"fn kiln_cos(x: f32) -> f32 {\n"
        "  let angle = kiln_angle(abs(x));\n"
        "  let n = u32(angle.y) + 1u;\n"
        "  let y = select(kiln_sin_near(angle.x), kiln_cos_near(angle.x), (n & 1u) != 0u);\n"
        "  let finite = (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u;\n"
        "  return select(kiln_nan(x), select(y, -y, (n & 2u) != 0u), finite);\n"
        "}\n",
        {"kiln_angle", "kiln_sin_near", "kiln_cos_near", "kiln_nan"}}},
      {"kiln_tan",
       {"fn kiln_tan(x: f32) -> f32 {\n"
        "  let angle = kiln_angle(abs(x));\n"
        "  let odd = (u32(angle.y) & 1u) != 0u;\n"
        "  let s = kiln_sin_near(angle.x);\n"
        "  let c = kiln_cos_near(angle.x);\n"
        "  let y = select(s, -c, odd) / select(c, s, odd);\n"
        "  let finite = (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u;\n"
        "  let sign = bitcast<u32>(x) & 0x80000000u;\n"
        "  return select(kiln_nan(x), bitcast<f32>(bitcast<u32>(y) ^ sign), finite);\n"
        "}\n",
        {"kiln_angle", "kiln_sin_near", "kiln_cos_near", "kiln_nan"}}},
      // asin(a) for a <= 0.5, half of acos(a) beyond: coefficients from the Cephes library's
      // asinf.
      {"kiln_asin_part",
       {"fn kiln_asin_part(a: f32) -> f32 {\n"
        "  let s = select(a * a, 0.5f * (1.0f - a), a > 0.5f);\n"
        "  let y = select(a, sqrt(s), a > 0.5f);\n"
        "  let p = (((4.2163199048e-2f * s + 2.4181311049e-2f) * s + 4.5470025998e-2f) * s + "
        "7.4953002686e-2f) * s;\n"
        "  return (p + 1.6666752422e-1f) * s * y + y;\n"
        "}\n",
        {}}},
      {"kiln_asin",
       {"fn kiln_asin(x: f32) -> f32 {\n"
        "  let a = abs(x);\n"
        "  let part = kiln_asin_part(a);\n"
        "  let y = kiln_with_sign(select(part, 1.5707964f - 2.0f * part, a > 0.5f), x);\n"
        "  return select(y, kiln_nan(x), bitcast<u32>(a) > 0x3f800000u);\n"
        "}\n",
        {"kiln_asin_part", "kiln_with_sign", "kiln_nan"}}},
      {"kiln_acos",
       {"fn kiln_acos(x: f32) -> f32 {\n"
        "  let a = abs(x);\n"
        "  let part = kiln_asin_part(a);\n"
        "  let far = select(2.0f * part, 3.1415927f - 2.0f * part, x < 0.0f);\n"
        "  let y = select(1.5707964f - kiln_with_sign(part, x), far, a > 0.5f);\n"
        "  return select(y, kiln_nan(x), bitcast<u32>(a) > 0x3f800000u);\n"
        "}\n",
        {"kiln_asin_part", "kiln_with_sign", "kiln_nan"}}},
      // a >= 0: reductions and coefficients of the Cephes library's atanf.
      {"kiln_atan_part",
       {"fn kiln_atan_part(a: f32) -> f32 {\n"
        "  let large = a > 2.4142136f;\n"
        "  let middle = a > 0.41421357f;\n"
        "  let y = select(select(a, a - 1.0f, middle), -1.0f, large) / select(select(1.0f, a + "
        "1.0f, middle), a, large);\n"
        "  let s = y * y;\n"
        "  let p = ((8.05374449538e-2f * s - 1.38776856032e-1f) * s + 1.99777106478e-1f) * s - "
        "3.33329491539e-1f;\n"
        "  return select(select(0.0f, 0.7853982f, middle), 1.5707964f, large) + (p * s * y + "
        "y);\n"
        "}\n",
        {}}},
      {"kiln_atan",
       {"fn kiln_atan(x: f32) -> f32 {\n"
        "  return select(kiln_with_sign(kiln_atan_part(abs(x)), x), x, kiln_is_nan(x));\n"
        "}\n",
        {"kiln_atan_part", "kiln_with_sign", "kiln_is_nan"}}},
      {"kiln_atan2",
       {"fn kiln_atan2(y: f32, x: f32) -> f32 {\n"
        "  let a = abs(x);\n"
        "  let b = abs(y);\n"
        "  let large = max(a, b);\n"
        "  let small = min(a, b);\n"
        "  let ratio = select(select(small / large, 1.0f, kiln_is_inf(small)), 0.0f, large == "
        "0.0f);\n"
        "  let part = kiln_atan_part(ratio);\n"
        "  let first = select(part, 1.5707964f - part, b > a);\n"
        "  let size = select(first, 3.1415927f - first, bitcast<u32>(x) >= 0x80000000u);\n"
        "  return select(kiln_with_sign(size, y), kiln_nan(x), kiln_is_nan(x) || "
        "kiln_is_nan(y));\n"
        "}\n",
        {"kiln_atan_part", "kiln_with_sign", "kiln_is_nan", "kiln_is_inf", "kiln_nan"}}},
      // Its series near 0; beyond (exp(a) - exp(-a)) / 2, with exp(a) / 2 as one exponential.
      {"kiln_sinh",
       {"fn kiln_sinh(x: f32) -> f32 {\n"
        "  let a = abs(x);\n"
        "  let s = a * a;\n"
        "  let near = (((2.7557319e-6f * s + 1.984127e-4f) * s + 8.333334e-3f) * s + "
        "0.16666667f) * s * a + a;\n"
        "  let half = exp(a - 0.6931472f);\n"
        "  let y = select(half - 0.25f / half, near, a < 1.0f);\n"
        "  return select(kiln_with_sign(y, x), x, kiln_is_nan(x));\n"
        "}\n",
        {"kiln_with_sign", "kiln_is_nan"}}},
      {"kiln_cosh",
       {"fn kiln_cosh(x: f32) -> f32 {\n"
        "  let a = abs(x);\n"
        "  let whole = exp(a);\n"
        "  let half = exp(a - 0.6931472f);\n"
        "  let y = select(half + 0.25f / half, 0.5f * (whole + 1.0f / whole), a < 1.0f);\n"
        "  return select(y, x, kiln_is_nan(x));\n"
        "}\n",
        {"kiln_is_nan"}}},
      // Near 0 as 2 atanh(x / (2 + x)) by its series, where log(1 + x) would lose what 1 + x
      // drops.
      {"kiln_log1p",
       {"fn kiln_log1p(x: f32) -> f32 {\n"
        "  let s = x / (2.0f + x);\n"
        "  let q = s * s;\n"
        "  let near = ((((0.22222222f * q + 0.2857143f) * q + 0.4f) * q + 0.6666667f) * q + "
        "2.0f) * s;\n"
        "  let y = select(log(1.0f + x), near, x > -0.2928932f && x < 0.41421357f);\n"
        "  return select(y, x, kiln_is_nan(x));\n"
        "}\n",
        {"kiln_is_nan"}}},
      {"kiln_expm1",
       {"fn kiln_expm1(x: f32) -> f32 {\n"
        "  let p = (((2.4801587e-5f * x + 1.984127e-4f) * x + 1.3888889e-3f) * x + 8.333334e-3f) "
        "* x + 0.041666668f;\n"
        "  let near = (((p * x + 0.16666667f) * x + 0.5f) * x + 1.0f) * x;\n"
        "  return select(select(exp(x) - 1.0f, near, abs(x) < 0.5f), x, kiln_is_nan(x));\n"
        "}\n",
        {"kiln_is_nan"}}},
  };
}

/// A function of two numbers of one type, by its name without that type.
void add_binary(Table& t, std::string_view name, std::string_view type, std::string_view body) {
  t[fmt::format("{}_{}", name, type)] = {
      fmt::format("fn {0}_{1}(a: {1}, b: {1}) -> {1} {{\n{2}}}\n", name, type, body), {}};
}

void add_integer_functions(Table& t) {
  // Never divided by 0, nor the least number by -1: the quotient is then that by 1, as of a / b.
  add_binary(t, "kiln_floor_div", "i32",
             "  let by = select(b, 1i, b == 0i || (a == -2147483647i - 1i && b == -1i));\n"
             "  let q = a / by;\n"
             "  let rest = a - q * by;\n"
             "  return select(q, q - 1i, rest != 0i && (rest < 0i) != (by < 0i));\n");
  add_binary(t, "kiln_floor_div", "u32", "  return a / select(b, 1u, b == 0u);\n");
  add_binary(t, "kiln_mod", "i32",
             "  let by = select(b, 1i, b == 0i || b == -1i);\n"
             "  let rest = a - a / by * by;\n"
             "  return select(rest, rest + by, rest != 0i && (rest < 0i) != (by < 0i));\n");
  add_binary(t, "kiln_mod", "u32", "  return a % select(b, 1u, b == 0u);\n");
  for (const std::string_view type : {"i32", "u32"}) {
    const auto shifted =
        fmt::format("  let n = u32(b);\n  return select(a << (n & 31u), {}(0), n > 31u);\n", type);
    add_binary(t, "kiln_shift_left", type, shifted);
  }
  add_binary(t, "kiln_shift_right", "i32", "  return a >> min(u32(b), 31u);\n");
  add_binary(t, "kiln_shift_right", "u32", "  return select(a >> (b & 31u), 0u, b > 31u);\n");
  t["kiln_sign_f32"] = {
      "fn kiln_sign_f32(x: f32) -> f32 {\n"
      "  let size = bitcast<u32>(x) & 0x7fffffffu;\n"
      "  let y = select(kiln_with_sign(1.0f, x), 0.0f, size == 0u);\n"
      "  return select(y, x, size > 0x7f800000u);\n"
      "}\n",
      {"kiln_with_sign"}};
  t["kiln_sign_i32"] = {"fn kiln_sign_i32(x: i32) -> i32 { return clamp(x, -1i, 1i); }\n", {}};
  t["kiln_sign_u32"] = {"fn kiln_sign_u32(x: u32) -> u32 { return min(x, 1u); }\n", {}};
}

}  // namespace

void add_wgsl_functions(std::map<std::string, WgslHelper>& to) {
  to.merge(circular_functions());
  add_integer_functions(to);
}

}  // namespace kiln
