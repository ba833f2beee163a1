// One thread combines one part of one column, with four steps in flight. Adjacent threads read adjacent columns.
{{ declarations }}
const step = {{ width }}u;

@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let job = (group.y * groups.x + group.x) * {{ workgroup_size_x }}u + local.x;
  if (job >= params.outputs * params.splits) { return; }
  let output = job % params.outputs;
  let place = place_of(output);
  let part = job / params.outputs;
  var r = part * params.chunk;
  let end = r + min(params.chunk, params.count - r);
  var item = start();
  for (; r + 3u * step < end; r += 4u * step) {
    let a = load(place, r);
    let b = load(place, r + step);
    let c = load(place, r + 2u * step);
    let d = load(place, r + 3u * step);
    item = combine(item, combine(combine(a, b), combine(c, d)));
  }
  for (; r < end; r += step) { item = combine(item, load(place, r)); }
  store(output * params.splits + part, item);
}
