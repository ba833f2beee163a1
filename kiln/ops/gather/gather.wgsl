// One thread picks one element.
{{ bindings }}

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;
  if (i >= params.count) { return; }
  var rest = i;
  var at = x_offset();
  var index_at = index_offset();
  for (var d = {{ rank }}u; d > 0u; d--) {
    let coordinate = rest % out_shape(d - 1u);
    rest /= out_shape(d - 1u);
    index_at += coordinate * index_stride(d - 1u);
    if (d - 1u != params.axis) { at += coordinate * x_stride(d - 1u); }
  }
  // A negative index is a large one as u32.
  let picked = u32(index[index_at]);
  if (picked >= params.size) {
    store_out(i, {{ outside }});
  } else {
    store_out(i, x[at + picked * x_stride(params.axis)]);
  }
}
