// Hands dumped kernels to Dawn, the other compiler of WGSL, which needs no GPU for it:
//
//     KILN_DUMP_KERNELS=/tmp/kernels ctest --preset dev
//     node tools/dawn/check_wgsl.mjs /tmp/kernels
//
// Each kernel that wgpu-native took becomes a shader module and a pipeline, by the layout beside it. Fails for any that Dawn
// refuses, for a dump that cannot be read, and for a folder without kernels; lists the kernels that need more than every
// WebGPU adapter has.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, globals } from 'webgpu';

Object.assign(globalThis, globals);

// What a kernel may ask for beyond the default, by the `enable` that asks.
const features = { f16: 'shader-f16', subgroups: 'subgroups' };
// Limits of which an adapter may have more than the default, by what Dawn says where they are too small.
const optional = [
  [/workgroup storage \((\d+) bytes\) is larger/, 'maxComputeWorkgroupStorageSize'],
  [/total number of workgroup invocations \((\d+)\) exceeds/, 'maxComputeInvocationsPerWorkgroup'],
  [/workgroup_size\((\d+), .*\) that exceeds the maximum/, 'maxComputeWorkgroupSizeX'],
];

// naga takes subgroup operations without the directive that WGSL asks for, and refuses the directive: it is added here.
function with_directives(code) {
  const uses = /\bsubgroup[A-Z]\w*\s*\(|@builtin\(\s*subgroup_/.test(code);
  return uses && !/\benable\b[^;]*\bsubgroups\b/.test(code) ? `enable subgroups; ${code}` : code;
}

function read_kernels(folder) {
  const files = new Set(readdirSync(folder));
  const kernels = [];
  for (const name of [...files].filter((file) => file.endsWith('.json')).sort()) {
    const base = name.slice(0, -'.json'.length);
    const layout = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    const spirv = files.has(`${base}.spv`);
    const code = spirv ? '' : with_directives(readFileSync(join(folder, `${base}.wgsl`), 'utf8'));
    kernels.push({ base, layout, spirv, code });
  }
  return { kernels, sources: [...files].filter((file) => /\.(wgsl|spv)$/.test(file)).length };
}

function features_of(code) {
  const asked = [...code.matchAll(/(?<=^|;)\s*enable\s+([^;]*);/gm)].flatMap((match) => match[1].split(','));
  return asked.map((name) => features[name.trim()]).filter((feature) => feature !== undefined).sort();
}

async function open(required) {
  const gpu = create(['backend=null']);
  const adapter = await gpu.requestAdapter();
  return { gpu, device: await adapter.requestDevice({ requiredFeatures: required }) };
}

function make_layout(device, { bindings, metadata }) {
  const groups = [];
  const add = (group, entry) => {
    while (groups.length <= group) groups.push([]);
    groups[group].push({ visibility: GPUShaderStage.COMPUTE, ...entry });
  };
  for (const { group, binding, read_only } of bindings) {
    add(group, { binding, buffer: { type: read_only ? 'read-only-storage' : 'storage' } });
  }
  const in_ring = metadata.bytes > 0 && !metadata.immediate;
  if (in_ring) {
    add(metadata.group, {
      binding: metadata.binding,
      buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: metadata.bytes },
    });
  }
  return device.createPipelineLayout({
    bindGroupLayouts: groups.map((entries) => device.createBindGroupLayout({ entries })),
    immediateSize: metadata.immediate ? metadata.bytes : 0,
  });
}

// The message of the fault that `action` makes, or undefined.
async function fault_of(device, action) {
  device.pushErrorScope('validation');
  let thrown;
  try {
    action();
  } catch (error) {
    thrown = error.message;
  }
  return (await device.popErrorScope())?.message ?? thrown;
}

// What Dawn has against the kernel: `fault` is an error, `needs` a limit that must be `amount`, above the default.
async function check(device, { code, layout }) {
  let module;
  const fault = await fault_of(device, () => { module = device.createShaderModule({ code }); });
  if (fault !== undefined) return { fault };
  const constants = Object.fromEntries(
    Object.entries(layout.constants).map(([name, value]) => [name, Number(value)]));
  const refused = await fault_of(device, () => device.createComputePipeline({
    layout: make_layout(device, layout),
    compute: { module, entryPoint: layout.entry, constants },
  }));
  if (refused === undefined) return {};
  if (/number of storage buffers .* exceeds the maximum/s.test(refused)) {
    return { needs: 'maxStorageBuffersPerShaderStage', amount: layout.bindings.length };  // Dawn counts by groups
  }
  for (const [pattern, limit] of optional) {
    const match = pattern.exec(refused);
    if (match) return { needs: limit, amount: Number(match[1]) };
  }
  return { fault: refused };
}

// "3 need LIMIT (9 to 12): a, b, 1 more".
function describe(need, kernels) {
  const amounts = kernels.map(({ amount }) => amount).filter((amount) => amount !== undefined);
  const [least, most] = [Math.min(...amounts), Math.max(...amounts)];
  const range = amounts.length === 0 ? '' : least === most ? ` (${least})` : ` (${least} to ${most})`;
  const names = [...new Set(kernels.map(({ base }) => base.slice(0, -17)))];  // without the hash
  const rest = names.length > 8 ? [`${names.length - 8} more`] : [];
  return `${kernels.length} need ${need}${range}: ${[...names.slice(0, 8), ...rest].join(', ')}`;
}

async function main(folder) {
  const { kernels, sources } = read_kernels(folder);
  const devices = new Map();
  const needs = new Map();
  const faults = [];
  let checked = 0;
  for (const kernel of kernels) {
    if (kernel.spirv) continue;
    const required = features_of(kernel.code);
    const key = required.join();
    if (!devices.has(key)) devices.set(key, await open(required));
    const result = await check(devices.get(key).device, kernel);
    ++checked;
    if (result.fault !== undefined) faults.push(`${kernel.base}.wgsl: ${result.fault.trimEnd()}`);
    const add = (need, amount) => needs.set(need, [...(needs.get(need) ?? []), { base: kernel.base, amount }]);
    for (const feature of required) add(feature);
    if (result.needs !== undefined) add(result.needs, result.amount);
  }
  devices.clear();  // else Dawn keeps the process alive
  for (const [need, of] of [...needs].sort()) console.log(describe(need, of));
  for (const fault of faults) console.error(fault);
  const modules = kernels.length - checked;
  console.log(`Dawn took ${checked - faults.length} of ${checked} kernels in WGSL; left out: ${modules} in SPIR-V, ` +
              `${sources - kernels.length} that wgpu-native refused`);
  if (checked === 0) throw new Error(`${folder} has no kernels`);
  return faults.length === 0;
}

if (process.argv.length !== 3) {
  console.error('usage: check_wgsl.mjs FOLDER');
  process.exitCode = 2;
} else {
  try {
    process.exitCode = (await main(process.argv[2])) ? 0 : 1;
  } catch (error) {
    console.error(`check_wgsl: ${error.message}`);
    process.exitCode = 1;
  }
}
