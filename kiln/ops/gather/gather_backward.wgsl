// One thread makes one element of x's gradient: it looks through all picks along its line, so that no two threads add to one
// place and the result does not depend on their order.
{{ bindings }}

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;
  if (i >= params.count) { return; }
  var rest = i;
  var inside = true;
  var mine = 0u;
  var grad_at = grad_offset();
  var index_at = index_offset();
  for (var d = {{ rank }}u; d > 0u; d--) {
    let coordinate = rest % out_shape(d - 1u);
    rest /= out_shape(d - 1u);
    if (d - 1u == params.axis) {
      mine = coordinate;
    } else {
      inside = inside && coordinate < grad_shape(d - 1u);
      grad_at += coordinate * grad_stride(d - 1u);
      index_at += coordinate * index_stride(d - 1u);
    }
  }
  var sum: Acc = 0;
  if (inside) {
    for (var k = 0u; k < grad_shape(params.axis); k++) {
      if (u32(index[index_at + k * index_stride(params.axis)]) == mine) {
        sum += Acc(grad[grad_at + k * grad_stride(params.axis)]);
      }
    }
  }
  store_out(i, Elem(sum));
}
