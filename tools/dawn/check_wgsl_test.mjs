// Tests of check_wgsl.mjs: node --test tools/dawn/check_wgsl_test.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('check_wgsl.mjs', import.meta.url));
const buffer = '@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n';
const main = (body, size = 64) => `@compute @workgroup_size(${size}) fn main() { ${body} }\n`;

function kernel(code, changes = {}) {
  return {
    code,
    layout: {
      label: 'op', entry: 'main', workgroup: [64, 1, 1], bindings: [{ group: 0, binding: 0, read_only: false }],
      metadata: { bytes: 0, immediate: false, group: 0, binding: 0 }, constants: {}, ...changes,
    },
  };
}

// Runs the program on a folder with these files.
function check(files) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln_dump_'));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, folder], { encoding: 'utf8' });
    return { status, stdout, stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function check_kernel({ code, layout }) {
  return check({
    'op-0123456789abcdef.wgsl': code,
    'op-0123456789abcdef.json': JSON.stringify(layout),
  });
}

test('a kernel with constants, a ring and two groups is taken', () => {
  const code = 'override by: f32;\nstruct P { n: f32 }\n@group(1) @binding(3) var<uniform> params: P;\n' + buffer +
    main('y[0] = by * params.n;');
  const result = check_kernel(kernel(code, {
    constants: { by: '2.5' }, metadata: { bytes: 16, immediate: false, group: 1, binding: 3 },
  }));
  assert.equal(result.status, 0, result.stderr);
  assert.match(result.stdout, /took 1 of 1 kernels/);
});

test('immediates are taken up to 64 bytes, and no arrays of them', () => {
  const with_immediates = (type, bytes) => check_kernel(kernel(
    `struct P { a: ${type} }\nvar<immediate> params: P;\n` + buffer + main('y[0] = f32(params.a[0][0]);'),
    { metadata: { bytes, immediate: true } }));
  assert.equal(with_immediates('mat4x4<f32>', 64).status, 0);
  const array = with_immediates('array<vec4<f32>, 1>', 16);
  assert.equal(array.status, 1);
  assert.match(array.stderr, /op-0123456789abcdef\.wgsl: .*arrays cannot be used/s);
  assert.equal(with_immediates('mat4x4<f32>', 128).status, 1);
});

test('what the layout does not have is an error, as is a missing constant', () => {
  assert.equal(check_kernel(kernel(buffer + main('y[0] = 1;'), { bindings: [] })).status, 1);
  assert.equal(check_kernel(kernel('override by: f32;\n' + buffer + main('y[0] = by;'))).status, 1);
  assert.equal(check_kernel(kernel(buffer + main('y[0] = 1;'), { entry: 'other' })).status, 1);
});

test('optional features and limits are listed', () => {
  const nine = Array.from({ length: 9 }, (_, i) => i);
  const many = check_kernel(kernel(
    nine.map((i) => `@group(0) @binding(${i}) var<storage, read_write> y${i}: array<f32>;\n`).join('') +
      main(nine.map((i) => `y${i}[0] = 1;`).join(' ')),
    { bindings: nine.map((binding) => ({ group: 0, binding, read_only: false })) }));
  assert.equal(many.status, 0, many.stderr);
  assert.match(many.stdout, /1 need maxStorageBuffersPerShaderStage \(9\): op\n/);

  const large = check_kernel(kernel(buffer + main('y[0] = 1;', '32, 16')));
  assert.equal(large.status, 0, large.stderr);
  assert.match(large.stdout, /1 need maxComputeInvocationsPerWorkgroup \(512\): op\n/);

  const wide = check_kernel(kernel(buffer + main('y[0] = 1;', 512)));
  assert.equal(wide.status, 0, wide.stderr);
  assert.match(wide.stdout, /1 need maxComputeWorkgroupSizeX \(512\): op\n/);

  const room = check_kernel(kernel(
    'var<workgroup> room: array<f32, 5000>;\n' + buffer + main('room[0] = 1; y[0] = room[1];')));
  assert.equal(room.status, 0, room.stderr);
  assert.match(room.stdout, /1 need maxComputeWorkgroupStorageSize \(20000\): op\n/);

  const half = check_kernel(kernel('enable f16; ' + buffer + main('y[0] = f32(f16(1));')));
  assert.equal(half.status, 0, half.stderr);
  assert.match(half.stdout, /1 need shader-f16: op\n/);
});

test('subgroup operations are listed, with the directive or without it', () => {
  const code = buffer + '@compute @workgroup_size(64) fn main(@builtin(subgroup_invocation_id) lane: u32) ' +
    '{ y[lane] = subgroupBroadcast(y[lane], 1u); }\n';
  for (const before of ['', 'enable subgroups; ', 'enable f16, subgroups; ', 'enable f16; ']) {
    const result = check_kernel(kernel(before + code));
    assert.equal(result.status, 0, before + result.stderr);
    assert.match(result.stdout, /1 need subgroups: op\n/);
    assert.equal(/1 need shader-f16: op\n/.test(result.stdout), before.includes('f16'), result.stdout);
  }
});

test('kernels of SPIR-V and refused ones are counted, not checked', () => {
  const { code, layout } = kernel(buffer + main('y[0] = 1;'));
  const result = check({
    'a-0123456789abcdef.wgsl': code, 'a-0123456789abcdef.json': JSON.stringify(layout),
    'b-0123456789abcdef.spv': '', 'b-0123456789abcdef.json': JSON.stringify(layout),
    'c-0123456789abcdef.wgsl': 'nonsense',
  });
  assert.equal(result.status, 0, result.stderr);
  assert.match(result.stdout, /took 1 of 1 kernels in WGSL; left out: 1 in SPIR-V, 1 that wgpu-native refused/);
});

test('a dump that cannot be read, and one of nothing, fail', () => {
  const { code, layout } = kernel(buffer + main('y[0] = 1;'));
  const name = 'a-0123456789abcdef';
  assert.equal(check({ [`${name}.json`]: JSON.stringify(layout) }).status, 1);
  assert.equal(check({ [`${name}.wgsl`]: code, [`${name}.json`]: '{"label"' }).status, 1);
  assert.equal(check({ [`${name}.wgsl`]: code, [`${name}.json`]: '{}' }).status, 1);
  assert.equal(check({ [`${name}.wgsl`]: code }).status, 1);
  assert.equal(check({}).status, 1);
  const gone = join(tmpdir(), 'kiln_no_such_folder');
  assert.equal(spawnSync(process.execPath, [program, gone]).status, 1);
  assert.equal(spawnSync(process.execPath, [program]).status, 2);
});
