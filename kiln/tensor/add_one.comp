#version 450
// For tests: bound by hand, without params.
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Out { float result[]; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  result[i] = x[i] + 1.0;
}
