{{ bindings }}

// One workgroup normalises one row.
var<workgroup> partial: array<f32, {{ workgroup_size_x }}>;

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let row = kiln_workgroup(group, groups).x;
  if (row >= params.rows) { return; }
  let start = row * params.size;
  var sum = 0.0f;
  for (var i = local.x; i < params.size; i += {{ workgroup_size_x }}u) {
    let value = f32(x[start + i]);
    sum += value * value;
  }
  partial[local.x] = sum;
  workgroupBarrier();
  for (var step = {{ workgroup_size_x }}u / 2u; step > 0u; step /= 2u) {
    if (local.x < step) { partial[local.x] += partial[local.x + step]; }
    workgroupBarrier();
  }
  let scale = inverseSqrt(partial[0] / f32(params.size) + params.epsilon);
  for (var i = local.x; i < params.size; i += {{ workgroup_size_x }}u) {
    store_out(start + i, Elem(f32(x[start + i]) * scale * f32(weight[i])));
  }
}
