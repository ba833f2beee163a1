// An argument that means something else than it says: each of these compiles where a parameter is a
// plain int, bool or double.
#include "kiln/kiln.hpp"

using namespace kiln;

enum Axis { rows, columns };

void reductions(const AnyTensor& x) {
  max(x, 0.5);              // error
  sum(x, true);             // error
  sum(x, 'a');              // error
  sum(x, rows);             // error
  sum(x, {0, true});        // error
  sum(x, {0, 1.0});         // error
  sum(x, 0, 1);             // error
  mean(x, 0, "keepdim");    // error
  min(x, 0, 0.5);           // error
  argmax(x, true);          // error
  argmin(x, 0, 1);          // error
  softmax(x, false);        // error
  log_softmax(x, 1.0);      // error
  Reduction{.axes = 1};     // error
  Reduction{.axes = true};  // error
}

void shapes(const AnyTensor& x, double real) {
  x.dim(true);                            // error
  x.shape()[0.5];                         // error
  Shape{2, true};                         // error
  Shape{2, 'a'};                          // error
  Shape{2.0};                             // error
  reshape(x, {2, false});                 // error
  permute(x, {0, true});                  // error
  transpose(x, false, true);              // error
  unsqueeze(x, real);                     // error
  slice(x, 0, 0.5);                       // error
  slice(x, 0, 0, true);                   // error
  slice(x, 0, 0, 4, 1.5);                 // error
  slice(x, true, 0);                      // error
  concat({x, x}, true);                   // error
  gather(x, 0.0, x);                      // error
  arange(2.5, x.device());                // error
  random_normal({2}, 0.5, x.device());    // error
  random_uniform({2}, true, x.device());  // error
  broadcast_to(x, {2, true});             // error
  matmul_cases(3);                        // error
  elementwise_cases(true);                // error
}

void numbers(const AnyTensor& x, bool yes) {
  (void)(x + true);                          // error
  (void)(yes * x);                           // error
  clamp(x, false, true);                     // error
  pow(x, 'a');                               // error
  greater(x, true);                          // error
  layer_norm(x, x, x, true);                 // error
  Param{true};                               // error
  LaunchParam("n", true);                    // error
  KernelSource::wgsl("").define("n", true);  // error
  x.device().fallback(1);                    // error
  ceil_div(2.5, 2);                          // error
}

void places(const AnyTensor& x) {
  x[true];                     // error
  x(0, 0.5);                   // error
  x(all, 'a');                 // error
  x[rows];                     // error
  x();                         // error
  x(slice(0, true));           // error
  x.sum(true);                 // error
  x.max(0, 1);                 // error
  x.reshape({2, true});        // error
  squeeze(x, false);           // error
  stack({x, x}, true);         // error
  maximum(x, true);            // error
  (void)(x == true);           // error
  if (x == x) return;          // error
  where(x > 0, x, false);      // error
  zeros(2);                    // error
  zeros({2}, 1);               // error
  full({2}, true);             // error
  arange(3, {.start = true});  // error
}

void options() {
  Adam{{.learning_rate = true}};                                     // error
  AdamOptions{.beta1 = false};                                       // error
  Reduction{.scale = true};                                          // error
  Scratch{"part", DType::f32, true};                                 // error
  webgpu::Launch{.source = KernelSource::wgsl(""), .strided = 1};    // error
  webgpu::Launch{.source = KernelSource::wgsl(""), .zeroed = 1};     // error
  webgpu::Launch{.source = KernelSource::wgsl(""), .trusted = 1};    // error
  webgpu::Launch{.source = KernelSource::wgsl(""), .rounds = true};  // error
  webgpu::Launch{.source = KernelSource::wgsl(""), .rounds = 0.5};   // error
  webgpu::device({.f16 = 1});                                        // error
  CheckCase{"case", {}, true};                                       // error
  CheckCase{"case", {}, 1, 1};                                       // error
  InputValues{.low = false};                                         // error
  Tolerance{true, 0};                                                // error
  CheckOptions{.gradients = 1};                                      // error
  CheckOptions{.difference_samples = true};                          // error
  CheckOptions{.seed = true};                                        // error
}

struct Op {
  static constexpr std::string_view name = "op";
  Param by;
  Expr body(Expr x) const { return x * true; }  // error
};
Op op{'a'};  // error

// What they say.
void fine(const AnyTensor& x, std::size_t size, std::uint8_t small, float16 half) {
  matmul_cases(true, 3);
  elementwise_cases(2);
  random_normal({2}, size, x.device());
  arange(size, x.device());
  arange(3, {.start = x.rank()});
  sum(x);
  sum(x, size, true);
  sum(x, {0, -1});
  sum(x, {});
  (void)x(all, slice(1, size), -1, ellipsis)[small];
  (void)Shape{x.dim(0), size, 3U, small};
  (void)(x + 1 - 2U * x / 0.5F + half);
  slice(x, small, 0, size);
  (void)Reduction{.axes = {0, 1}, .scale = 1 / half};
  (void)AdamOptions{.learning_rate = 1, .beta1 = 0.5F};
  (void)webgpu::Launch{.source = KernelSource::wgsl(""), .strided = true, .rounds = x.dim(0)};
  (void)CheckOptions{.f16 = {1e-2, 0}, .gradients = false, .difference_samples = small};
}
