#version 450
// For tests: numbers where no launch puts any.
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Out { float result[]; };
layout(push_constant) uniform Params { float factor; };

void main() { result[0] = x[0] * factor; }
