{{ bindings }}

// out[z] = lhs[z] * rhs[z]. Both operands are read through their loads, whichever of their last two dimensions is contiguous.
//
// A workgroup computes a tile of TM x TN outputs and walks along k, TK steps at a time. Both operands are copied to workgroup
// memory in k-major order (so lhs is transposed), and the inner loop reads whole vectors of both. A thread computes RM x RN
// outputs in registers. Nothing here relies on the adapter's bounds checks.
const TM = {{ tile_m }}u;
const TN = {{ tile_n }}u;
const TK = {{ tile_k }}u;
const RM = {{ thread_m }}u;             // multiples of 4, as are the tile's sides
const RN = {{ thread_n }}u;
const SPLIT = {{ k_split }}u;           // teams of threads that share a tile, each taking every SPLIT-th k
const BUFFERS = {{ buffers }}u;         // 2: the next tile is written while this one is read, with one barrier for each tile
const LHS_ALONG_K = {{ lhs_along_k }};  // k is the contiguous dimension of lhs (row-major), else m
const RHS_ALONG_K = {{ rhs_along_k }};  // k is the contiguous dimension of rhs (transposed), else n
const LHS_VEC = {{ lhs_vec }};          // the contiguous dimension of lhs divides by 4, so that no quad is half outside
const RHS_VEC = {{ rhs_vec }};
const OUT_VEC = {{ out_vec }};          // n divides by 4
const GRADIENT_LHS = {{ gradient_lhs }};  // zeros of this operand are strong: 0 times infinity or NaN is 0
const GRADIENT_RHS = {{ gradient_rhs }};

const THREADS = {{ workgroup_size_x }}u;
const COLS = TN / RN;                   // a team is ROWS x COLS threads
const ROWS = TM / RM;
const TEAM = COLS * ROWS;
const QM = RM / 4;                      // quads of rows and of columns that a thread owns
const QN = RN / 4;
const LHS_PITCH = TM / 4 + 1;           // in vec4; the extra one keeps stores that transpose in different banks
const RHS_PITCH = TN / 4 + 1;
const RHS_BASE = TK * LHS_PITCH;
const STAGE = TK * (LHS_PITCH + RHS_PITCH);
const LHS_QUADS = TM * TK / 4;          // quads to load for a tile, and the share of one thread
const RHS_QUADS = TN * TK / 4;
const LHS_SHARE = (LHS_QUADS + THREADS - 1) / THREADS;
const RHS_SHARE = (RHS_QUADS + THREADS - 1) / THREADS;
const LHS_M = select(1u, 0u, LHS_ALONG_K);  // from one element of a quad to the next
const LHS_K = select(0u, 1u, LHS_ALONG_K);
const RHS_N = select(1u, 0u, RHS_ALONG_K);
const RHS_K = select(0u, 1u, RHS_ALONG_K);
const ROOM = max(BUFFERS * STAGE, SPLIT / 2 * TM * TN / 4);

alias Quad = vec4<Acc>;
var<workgroup> room: array<Quad, ROOM>;

// A quad is four neighbours of a tile in memory: along k, or across it (along m of lhs, n of rhs).
struct Place { across: u32, k: u32 }

fn place(quad: u32, side: u32, along_k: bool) -> Place {
  if (along_k) { return Place(quad / (TK / 4), quad % (TK / 4) * 4); }
  return Place(quad % (side / 4) * 4, quad / (side / 4));
}

fn keep_quad(p: Place, base: u32, pitch: u32, along_k: bool, q: Quad) {
  let at = base + p.k * pitch + p.across / 4;
  if (along_k) {
    let lane = p.across % 4;
    room[at][lane] = q.x;
    room[at + pitch][lane] = q.y;
    room[at + pitch * 2][lane] = q.z;
    room[at + pitch * 3][lane] = q.w;
  } else {
    room[at] = q;
  }
}

fn lhs_one(at: lhs_Matrix, m: u32, k: u32) -> Acc { return Acc(load_lhs_at(at, m, k)); }
fn rhs_one(at: rhs_Matrix, n: u32, k: u32) -> Acc { return Acc(load_rhs_at(at, k, n)); }

// A quad outside of the operand is zero. Nothing there is ever loaded, so a NaN there cannot spread.
fn lhs_quad(at: lhs_Matrix, m: u32, k: u32) -> Quad {
  var q = Quad();
  if (m < params.m && k < params.k) {
    if (LHS_VEC) { return Quad({{ lhs_four }}); }
    let left = select(params.m - m, params.k - k, LHS_ALONG_K);
    q.x = lhs_one(at, m, k);
    if (left > 1) { q.y = lhs_one(at, m + LHS_M, k + LHS_K); }
    if (left > 2) { q.z = lhs_one(at, m + LHS_M * 2, k + LHS_K * 2); }
    if (left > 3) { q.w = lhs_one(at, m + LHS_M * 3, k + LHS_K * 3); }
  }
  return q;
}

fn rhs_quad(at: rhs_Matrix, n: u32, k: u32) -> Quad {
  var q = Quad();
  if (n < params.n && k < params.k) {
    if (RHS_VEC) { return Quad({{ rhs_four }}); }
    let left = select(params.n - n, params.k - k, RHS_ALONG_K);
    q.x = rhs_one(at, n, k);
    if (left > 1) { q.y = rhs_one(at, n + RHS_N, k + RHS_K); }
    if (left > 2) { q.z = rhs_one(at, n + RHS_N * 2, k + RHS_K * 2); }
    if (left > 3) { q.w = rhs_one(at, n + RHS_N * 3, k + RHS_K * 3); }
  }
  return q;
}

// What a thread copies from memory to workgroup memory.
struct Load { lhs: array<Quad, LHS_SHARE>, rhs: array<Quad, RHS_SHARE> }

fn load(next: ptr<function, Load>, thread: u32, lhs_base: lhs_Matrix, rhs_base: rhs_Matrix, m0: u32, n0: u32, k0: u32) {
  for (var i = 0u; i < LHS_SHARE; i++) {
    let p = place(thread + i * THREADS, TM, LHS_ALONG_K);
    (*next).lhs[i] = lhs_quad(lhs_base, m0 + p.across, k0 + p.k);
  }
  for (var i = 0u; i < RHS_SHARE; i++) {
    let p = place(thread + i * THREADS, TN, RHS_ALONG_K);
    (*next).rhs[i] = rhs_quad(rhs_base, n0 + p.across, k0 + p.k);
  }
}

fn keep(next: ptr<function, Load>, thread: u32, stage: u32) {
  for (var i = 0u; i < LHS_SHARE; i++) {
    let quad = thread + i * THREADS;
    if (LHS_QUADS % THREADS == 0 || quad < LHS_QUADS) {
      keep_quad(place(quad, TM, LHS_ALONG_K), stage, LHS_PITCH, LHS_ALONG_K, (*next).lhs[i]);
    }
  }
  for (var i = 0u; i < RHS_SHARE; i++) {
    let quad = thread + i * THREADS;
    if (RHS_QUADS % THREADS == 0 || quad < RHS_QUADS) {
      keep_quad(place(quad, TN, RHS_ALONG_K), stage + RHS_BASE, RHS_PITCH, RHS_ALONG_K, (*next).rhs[i]);
    }
  }
}

alias Sums = array<Quad, RM * QN>;

fn multiply(acc: ptr<function, Sums>, stage: u32, team: u32, x: u32, y: u32) {
  for (var step = 0u; step < TK / SPLIT; step++) {
    let k = step * SPLIT + team;
    var b: array<Quad, QN>;
    for (var j = 0u; j < QN; j++) { b[j] = room[stage + RHS_BASE + k * RHS_PITCH + x + j * COLS]; }
    for (var i = 0u; i < QM; i++) {
      let a = room[stage + k * LHS_PITCH + y + i * ROWS];
      for (var j = 0u; j < QN; j++) {
        (*acc)[(i * 4 + 0) * QN + j] += a.x * b[j];
        (*acc)[(i * 4 + 1) * QN + j] += a.y * b[j];
        (*acc)[(i * 4 + 2) * QN + j] += a.z * b[j];
        (*acc)[(i * 4 + 3) * QN + j] += a.w * b[j];
      }
    }
  }
}

// By the bits: compilers take 0 * x for 0, and would drop a comparison of floats.
fn bits(q: Quad) -> vec4<u32> { return bitcast<vec4<u32>>(q) & vec4<u32>(0x7fffffffu); }
fn is_nan4(q: Quad) -> vec4<bool> { return bits(q) > vec4<u32>(0x7f800000u); }

// Adds up sums with a NaN again, with strong zeros of the gradient. That is rare, so the loop above does without it.
fn summed_again(row: u32, col: u32, batch: u32) -> Quad {
  let lhs_base = lhs_matrix(batch);
  let rhs_base = rhs_matrix(batch);
  let last = params.n - 1;
  var sum = Quad();
  for (var k = 0u; k < params.k && !all(is_nan4(sum)); k++) {
    let a = Quad(lhs_one(lhs_base, row, k));
    let b = Quad(rhs_one(rhs_base, min(col, last), k), rhs_one(rhs_base, min(col + 1, last), k),
                 rhs_one(rhs_base, min(col + 2, last), k), rhs_one(rhs_base, min(col + 3, last), k));
    let zero = bits(select(b, a, GRADIENT_LHS)) == vec4<u32>();
    sum += select(a * b, Quad(), zero);
  }
  return sum;
}

// Stores four adjacent elements of a row, those that are inside of the result.
fn put(row: u32, col: u32, batch: u32, sums: Quad) {
  if (row >= params.m) { return; }
  var four = sums;
  if ((GRADIENT_LHS || GRADIENT_RHS) && any(is_nan4(sums))) { four = summed_again(row, col, batch); }
  let at = (batch * params.m + row) * params.n + col;
  if (OUT_VEC) {
    if (col < params.n) { store_out4(at, vec4<Elem>(four)); }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (col + c < params.n) { store_out(at + c, Elem(four[c])); }
    }
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let tile = kiln_workgroup(group, groups);
  let m0 = tile.y * TM;
  let n0 = tile.x * TN;
  if (m0 >= params.m || n0 >= params.n || tile.z >= params.batches) { return; }  // surplus of a folded grid
  let lhs_base = lhs_matrix(tile.z);
  let rhs_base = rhs_matrix(tile.z);
  let team = select(thread / TEAM, 0, SPLIT == 1);
  let x = thread % COLS;
  let y = thread / COLS % ROWS;

  var acc: Sums;
  var next: Load;
  let tiles = (params.k + TK - 1) / TK;
  // Loads are one tile ahead. The first load is before the loop: a test for it in the loop costs a fifth of the speed on a GPU.
  // The load after the last tile reads nothing and gives zeros.
  load(&next, thread, lhs_base, rhs_base, m0, n0, 0u);
  keep(&next, thread, 0u);
  workgroupBarrier();
  for (var step = 1u; step <= tiles; step++) {
    load(&next, thread, lhs_base, rhs_base, m0, n0, step * TK);
    multiply(&acc, (step - 1) % BUFFERS * STAGE, team, x, y);
    if (BUFFERS == 1) { workgroupBarrier(); }
    keep(&next, thread, step % BUFFERS * STAGE);
    workgroupBarrier();
  }

  // The sums of the teams are added: again and again half of the teams hand theirs to the other half.
  for (var half = SPLIT / 2; half > 0; half /= 2) {
    let at = (team % half * TEAM + thread % TEAM) * (RM * QN);
    if (team >= half && team < half * 2) {
      for (var i = 0u; i < RM * QN; i++) { room[at + i] = acc[i]; }
    }
    workgroupBarrier();
    if (team < half) {
      for (var i = 0u; i < RM * QN; i++) { acc[i] += room[at + i]; }
    }
    workgroupBarrier();
  }
  if (team > 0) { return; }

  // One line for each quad: a loop that the compiler does not unroll would move the sums out of registers.
{{ stores }}
}
