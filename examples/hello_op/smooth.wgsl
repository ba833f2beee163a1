{{ bindings }}

// One thread computes one element: the mean of itself and the elements beside it in its row.
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }} + local.x;
  if (i >= params.count) { return; }
  let column = i % params.columns;
  var sum = f32(x[i]);
  if (column > 0u) { sum += f32(x[i - 1u]); }
  if (column + 1u < params.columns) { sum += f32(x[i + 1u]); }
  store_out(i, Elem(sum / 3.0));
}
