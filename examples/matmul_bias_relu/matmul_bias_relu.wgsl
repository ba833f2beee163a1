{{ bindings }}

// One thread computes one output: the readable kernel.
@compute @workgroup_size({{ workgroup_size_x }}, {{ workgroup_size_y }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let tile = kiln_workgroup(group, groups);  // undoes the folding of large grids
  let row = tile.y * {{ workgroup_size_y }} + local.y;
  let col = tile.x * {{ workgroup_size_x }} + local.x;
  if (row >= params.m || col >= params.n) { return; }
  let a = lhs_batch(tile.z);                 // where this batch starts, broadcasting included
  let b = rhs_batch(tile.z);
  var sum: Acc = 0;                          // f32, also for f16 operands
  for (var k = 0u; k < params.k; k++) {
    sum += Acc(lhs[a + row * params.k + k]) * Acc(rhs[b + k * params.n + col]);
  }
  let index = (tile.z * params.m + row) * params.n + col;
  store_out(index, relu(Elem(sum) + bias[index]));
}
