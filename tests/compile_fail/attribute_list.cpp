// A class that iterates may have more to it than its iterators show.
// expect: an attribute must be a number, an enum, a Param
#include "kiln/kiln.hpp"

using namespace kiln;

class Sizes {
 public:
  const int* begin() const { return sizes_; }
  const int* end() const { return sizes_ + 2; }
  std::size_t size() const { return 2; }

 private:
  int sizes_[2] = {};
  int step_ = 0;
};

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Sizes sizes;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};

AnyTensor run(const AnyTensor& x) { return apply(Op{{}}, x); }
