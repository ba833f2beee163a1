// One thread makes one sum a float, rounded to the nearest, to even in the middle.
{{ bindings }}

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;
  if (i >= params.count) { return; }
  let top = tops[i];
  var low = digits[2u * i];
  var high = digits[2u * i + 1u];
  if (top == 255u) {
    let infinity = select(0xff800000u, 0x7f800000u, (low & 2u) != 0u);
    store_out(i, bitcast<f32>(select(infinity, 0x7fc00000u, (low & 1u) != 0u || low == 6u)));
    return;
  }
  let sign = high & 0x80000000u;
  if (sign != 0u) {
    low = ~low + 1u;
    high = ~high + select(0u, 1u, low == 0u);
  }
  if ((low | high) == 0u) {
    store_out(i, 0.0);
    return;
  }
  var zeros = countLeadingZeros(high);
  if (zeros == 32u) {
    zeros += countLeadingZeros(low);
    high = low;
    low = 0u;
  }
  if ((zeros & 31u) > 0u) {
    high = (high << (zeros & 31u)) | (low >> (32u - (zeros & 31u)));
    low <<= zeros & 31u;
  }
  let exponent = i32(top + 40u) - i32(params.spare + zeros);
  var bits = 0x7f800000u;
  if (exponent < 255) {
    let drop = 8u + u32(max(1 - exponent, 0));
    var keep = 0u;
    var rest = select(0u, high, drop == 32u);
    if (drop < 32u) {
      keep = high >> drop;
      rest = high << (32u - drop);
    }
    let up = rest > 0x80000000u || (rest == 0x80000000u && (low != 0u || (keep & 1u) == 1u));
    bits = min((u32(max(exponent - 1, 0)) << 23u) + keep + select(0u, 1u, up), bits);
  }
  store_out(i, bitcast<f32>(bits | sign));
}
