{{ bindings }}

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.n) { return; }
  store_out(id.x, x[id.x] + x[id.x]);
}
