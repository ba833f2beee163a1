#pragma once

namespace kiln {

// The layers an operation can take part in; named in `using layers = Layers<...>`.

/// Gradients: rules `backward` (or `webgpu_backward`), `save` and struct Saved.
struct Autodiff {};
/// The compute runtimes: rule `webgpu_kernel`, `webgpu_forward`, `cpu_kernel`, `reduction` or
/// `view`.
struct Cube {};
/// Shapes before values: rule `output`, or a lazy registration by hand, `fuse`. An operation
/// without either runs at once.
struct Fusion {};

/// The layer follows from the `reference` rule: Default<Autodiff> differentiates it, Default<Cube>
/// and Default<Fusion> run it.
template <class Layer>
struct Default {};

template <class... Layer>
struct Layers {};

}  // namespace kiln
