// One thread takes one value, and adds it to the sum of its place: an integer in two words.
// What comes before `values` is stored, because the largest exponents are those of the same bits.
{{ bindings }}

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;
  if (i >= params.count) { return; }
  let place = load_places(i);
  let bits = bitcast<u32>(f32(values[i]));
  if (place >= params.size || (bits << 1u) == 0u) { return; }
  let top = tops[place];
  let exponent = extractBits(bits, 23u, 8u);
  var low = extractBits(bits, 0u, 23u);
  if (top == 255u) {  // the sum is not finite; what is says how
    if (exponent < 255u) { return; }
    let sign = select(2u, 4u, (bits >> 31u) != 0u);
    atomicOr(&out[2u * place], select(sign, 1u, low != 0u));
    return;
  }
  if (exponent > 0u) { low |= 0x800000u; }
  var high = 0u;
  let less = top - max(exponent, 1u);
  if (less <= params.spare) {
    let shift = params.spare - less;
    if (shift >= 32u) {
      high = low << (shift - 32u);
      low = 0u;
    } else if (shift > 0u) {
      high = low >> (32u - shift);
      low <<= shift;
    }
  } else {
    let shift = less - params.spare;
    if (shift > 24u) { return; }
    low = (low + (1u << (shift - 1u))) >> shift;
  }
  if ((bits >> 31u) != 0u) {
    low = ~low + 1u;
    high = ~high + select(0u, 1u, low == 0u);
  }
  let before = atomicAdd(&out[2u * place], low);
  high += select(0u, 1u, before + low < low);
  if (high != 0u) { atomicAdd(&out[2u * place + 1u], high); }
}
