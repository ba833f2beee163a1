{{ bindings }}

// out[z] = lhs[z] * rhs[z] on a software adapter. There a core runs a workgroup, whose threads are the lanes of its vectors.
//
// Loads are expensive there, since each is a load for every lane. Barriers cost more, so nothing goes through workgroup memory.
// A thread computes ROWS x COLS outputs in registers. Its columns are LANES apart, so that the lanes' columns are adjacent. With
// subgroup operations a lane loads one value of lhs in LANES and hands it to the others. Operands are read through
// their loads, whose strides are numbers of the launch, so one text serves every layout and size.
const LANES = {{ workgroup_size_x }}u;
const ROWS = {{ rows }}u;
const COLS = {{ cols }}u;

alias Row = {{ row }};
alias Bits = {{ bits }};
{{ functions }}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin({{ lane }}) lane: u32) {
  let tile = kiln_workgroup(group, groups);
  let m0 = tile.y * ROWS;
  let n0 = tile.x * LANES * COLS;
  if (m0 >= params.m || n0 >= params.n || tile.z >= params.batches) { return; }  // surplus of a folded grid
  let lhs_base = lhs_matrix(tile.z);
  let rhs_base = rhs_matrix(tile.z);

  // Rows and columns outside of the result read those at its edge. They are not stored.
{{ starts }}
  for (var k = 0u; k < params.k; k++) {
{{ step }}
  }
{{ again }}

  // The bounds are no constants, so that compilers do not unroll the loops: the store, with everything fused into it, stays one.
  var sums = array<Row, ROWS>({{ sums }});
  let rows = min(params.m - m0, ROWS);
  let cols = (min(params.n - n0, LANES * COLS) + LANES - 1) / LANES;
  for (var i = 0u; i < rows; i++) {
    let row = sums[i];
    let at = (tile.z * params.m + m0 + i) * params.n;
    for (var j = 0u; j < cols; j++) {
      let col = n0 + j * LANES + lane;
      if (col < params.n) { store_out(at + col, Elem({{ sum }})); }
    }
  }
}
