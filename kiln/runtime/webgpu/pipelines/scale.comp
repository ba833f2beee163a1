#version 450
// For tests: result = x * factor + amount.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Out { float result[]; };
layout(set = 1, binding = 0) uniform Params { uint count; float factor; };
layout(constant_id = 3) const float amount = 1.0;

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < count) result[i] = x[i] * factor + amount;
}
