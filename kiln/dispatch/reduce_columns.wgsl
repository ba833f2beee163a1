// One thread combines one part of one column; neighbouring threads read neighbouring columns.
{{ declarations }}
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let job = (group.y * groups.x + group.x) * {{ workgroup_size_x }}u + local.x;
  if (job >= params.outputs * params.splits) { return; }
  let output = job % params.outputs;
  let base = params.offset + kept_offset(output);
  let part = job / params.outputs;
  let begin = part * params.chunk;
  let end = min(begin + params.chunk, params.count);
  var item = start();
  for (var r = begin; r < end; r++) { item = combine(item, load(base + reduced_offset(r), r)); }
  store(output * params.splits + part, item);
}
