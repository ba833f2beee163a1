// A team of lanes combines one part of one row. Each lane has four steps in flight; then lanes are combined eight at a time.
{{ declarations }}
const lanes = {{ lanes }}u;
const teams = {{ workgroup_size_x }}u / lanes;
const step = lanes * {{ width }}u;
var<workgroup> items: array<Item, {{ workgroup_size_x }}>;

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let lane = local.x % lanes;
  let job = (group.y * groups.x + group.x) * teams + local.x / lanes;
  let works = job < params.outputs * params.splits;
  var item = start();
  if (works) {
    let place = place_of(job / params.splits);
    let begin = (job % params.splits) * params.chunk;
    let end = begin + min(params.chunk, params.count - begin);
    var r = begin + lane * {{ width }}u;
    for (; r + 3u * step < end; r += 4u * step) {
      let a = load(place, r);
      let b = load(place, r + step);
      let c = load(place, r + 2u * step);
      let d = load(place, r + 3u * step);
      item = combine(item, combine(combine(a, b), combine(c, d)));
    }
    for (; r < end; r += step) { item = combine(item, load(place, r)); }
  }
  items[local.x] = item;
  for (var left = lanes; left > 1u; left = max(left / 8u, 1u)) {
    let next = max(left / 8u, 1u);
    workgroupBarrier();
    if (lane < next) {
      for (var i = next; i < left; i += next) { item = combine(item, items[local.x + i]); }
      items[local.x] = item;
    }
  }
  if (works && lane == 0u) { store(job, item); }
}
