// One thread takes one value: the largest exponent of each place. What comes before `values` is
// stored, because this kernel and the next must see the same bits.
{{ bindings }}

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;
  if (i >= params.count) { return; }
  let place = load_places(i);
  let bits = bitcast<u32>(f32(values[i]));
  if (place >= params.size || (bits << 1u) == 0u) { return; }
  atomicMax(&out[place], max(extractBits(bits, 23u, 8u), 1u));
}
