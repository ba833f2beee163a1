// One workgroup combines one part of one row; lanes step through it together, one load at a time, then fold in a tree.
{{ declarations }}
var<workgroup> lanes: array<Item, {{ workgroup_size_x }}>;

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let job = group.y * groups.x + group.x;
  if (job >= params.outputs * params.splits) { return; }
  let base = params.offset + kept_offset(job / params.splits);
  let begin = (job % params.splits) * params.chunk;
  let end = min(begin + params.chunk, params.count);
  var item = start();
  for (var r = begin + local.x * {{ width }}u; r < end; r += {{ workgroup_size_x }}u * {{ width }}u) {
    item = combine(item, load(base + reduced_offset(r), r));
  }
  lanes[local.x] = item;
  for (var half = {{ workgroup_size_x }}u / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local.x < half) { lanes[local.x] = combine(lanes[local.x], lanes[local.x + half]); }
  }
  if (local.x == 0u) { store(job, lanes[0]); }
}
