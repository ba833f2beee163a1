#version 450
// For tests: two inputs, two results, scratch memory, every kind of number.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Y { float y[]; };
layout(set = 0, binding = 2) buffer Sum { float sum[]; };
layout(set = 0, binding = 3) buffer Difference { float difference[]; };
layout(set = 0, binding = 4) buffer Temp { float temp[]; };
layout(set = 1, binding = 0) uniform Params {
  uint count;
  float factor;
  float shift;
};
layout(constant_id = 0) const float tuned = 0.0;

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  temp[i] = y[i] * factor;
  sum[i] = x[i] + temp[i] + shift + tuned;
  difference[i] = x[i] - temp[i];
}
