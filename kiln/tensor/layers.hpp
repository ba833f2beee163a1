#pragma once

namespace kiln {

// The layers that an operation takes part in, named in `using layers = Layers<...>`.

/// Gradients: rules `backward` (or `webgpu_backward`), `save` and struct Saved.
struct Autodiff {};
/// Computing: a device runs a kernel as a cube of threads, x by y by z. Rule `webgpu_kernel`,
/// `webgpu_forward`, `cpu_kernel`, `reduction`, `view` or `element`.
struct Cube {};
/// Shapes that are known before values: rule `output`, or rule `fuse`, which queues by hand. An
/// operation without either runs at once.
struct Fusion {};

/// The layer follows from the `reference` rule: Default<Autodiff> differentiates it, Default<Cube>
/// and Default<Fusion> run it. Without a reference Default<Autodiff> derives the gradient of a rule
/// `element`, if the result's coordinates follow from those of each read: an axis of the result for
/// each of the operand's, times and plus numbers, or modulo a size that both have.
template <class Layer>
struct Default {};

/// The layers of an operation.
///
///     struct Scale {
///       static constexpr std::string_view name = "scale";
///       using layers = Layers<Default<Autodiff>, Default<Cube>, Fusion>;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       static AnyTensor reference(const AnyTensor& x) { return 2 * x; }
///     };
///     apply(Scale{}, tensor({1.0, 2.0}));   // [2, 4]
template <class... Layer>
struct Layers {};

}  // namespace kiln
