#version 450

// One invocation computes one output: the readable kernel in GLSL, for devices that take SPIR-V.
layout(local_size_x = 16, local_size_y = 16) in;

// The operation's inputs in its order, then its output. Dense, every operand with all the batch.
layout(set = 0, binding = 0) readonly buffer Lhs { float lhs[]; };
layout(set = 0, binding = 1) readonly buffer Rhs { float rhs[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) buffer Out { float result[]; };
// The launch's params, in its order.
layout(set = 1, binding = 0) uniform Params { uint m, k, n; };

void main() {
  uint row = gl_GlobalInvocationID.y;
  uint col = gl_GlobalInvocationID.x;
  uint batch = gl_WorkGroupID.z;
  if (row >= m || col >= n) return;
  uint a = (batch * m + row) * k;
  uint b = batch * k * n + col;
  float sum = 0.0;
  for (uint i = 0; i < k; ++i) sum += lhs[a + i] * rhs[b + i * n];
  uint index = (batch * m + row) * n + col;
  float value = sum + bias[index];
  result[index] = value <= 0.0 ? 0.0 : value;  // not max(): a NaN stays
}
