// One thread makes one number, from its index and the seed alone.
{{ bindings }}

fn rotate(x: u32, by: u32) -> u32 { return (x << by) | (x >> (32u - by)); }

// Threefry-2x32, 20 rounds: the rotations and the key schedule of the paper.
fn threefry(counter: vec2<u32>, key: vec2<u32>) -> vec2<u32> {
  let rotations = array<u32, 8>(13u, 15u, 26u, 6u, 17u, 29u, 16u, 24u);
  let keys = array<u32, 3>(key.x, key.y, 0x1bd11bdau ^ key.x ^ key.y);
  var x = counter + key;
  for (var round = 0u; round < 20u; round++) {
    x.x += x.y;
    x.y = rotate(x.y, rotations[round % 8u]) ^ x.x;
    if (round % 4u == 3u) {
      let step = round / 4u + 1u;
      x += vec2<u32>(keys[step % 3u], keys[(step + 1u) % 3u] + step);
    }
  }
  return x;
}

// 24 bits, so that every result is exact in f32 and below 1.
fn unit(bits: u32) -> f32 { return f32(bits >> 8u) * 0x1p-24f; }

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;
  if (i >= params.count) { return; }
  let bits = threefry(vec2<u32>(i, 0u), vec2<u32>(params.seed_low, params.seed_high));
  let u = unit(bits.x);
  let v = unit(bits.y);
  // In halves, because the sum of both may be out of range even if the result is not.
  let half = params.offset * 0.5f + params.scale * ({{ sample }});
  store_out(i, Elem(min(max(half + half, params.least), params.most)));
}
