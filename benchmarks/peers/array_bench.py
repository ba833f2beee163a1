#!/usr/bin/env python3
"""What of kiln's benchmarks NumPy and MLX have, on the CPU, in f32.

    python3 benchmarks/peers/array_bench.py            # those that are installed
    python3 benchmarks/peers/array_bench.py numpy      # or mlx
"""
import sys
import time


def seconds(f, calls):
    """Seconds a call: the median of five rounds."""
    for _ in range(2):
        f()
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            f()
        rounds.append((time.perf_counter() - start) / calls)
    return sorted(rounds)[2]


def chain(a, b, maximum, absolute):
    t = a + b
    t = t * a
    t = maximum(t, 0)
    t = t - b
    t = t * 0.5
    t = absolute(t)
    t = t + 1
    return t * b


def report(name, took, text):
    print(f"{name}: {text(took)}", flush=True)


def rate(amount, unit):
    return lambda took: f"{amount / took / 1e9:.1f} {unit}"


def milliseconds(took):
    return f"{took * 1e3:.2f} ms"


def numpy_bench():
    import numpy as np

    print(f"NumPy {np.__version__}")
    random = np.random.default_rng(1)
    a, b, c = (random.uniform(-1, 1, (1024, 1024)).astype(np.float32) for _ in range(3))
    flops = rate(2 * 1024**3, "GFLOP/s")
    report("matmul 1024", seconds(lambda: a @ b, 10), flops)
    report("relu(matmul(a, b) + c) 1024", seconds(lambda: np.maximum(a @ b + c, 0), 10), flops)
    x, y = (random.standard_normal(2**24).astype(np.float32) for _ in range(2))
    report("chain_of_8, 2^24", seconds(lambda: chain(x, y, np.maximum, np.abs), 2), milliseconds)
    report("sum, 2^24", seconds(x.sum, 10), rate(4 * x.size, "GB/s"))
    small = np.ones(16, np.float32)
    report("add_one, 16 elements", seconds(lambda: small + 1, 5000), lambda took: f"{took * 1e6:.2f} us")


def mlx_bench():
    import mlx.core as mx
    import mlx.nn as nn

    mx.set_default_device(mx.cpu)
    print(f"MLX {mx.__version__}")

    def run(f):
        def now():
            mx.eval(f())
        return now

    a, b, c = (mx.random.uniform(-1, 1, (1024, 1024)) for _ in range(3))
    x, y = (mx.random.normal((2**24,)) for _ in range(2))
    rows = x.reshape(16384, 1024)
    weight, bias = mx.full((1024,), 1.5), mx.full((1024,), 0.5)
    mx.eval(a, b, c, x, y, rows, weight, bias)
    flops = rate(2 * 1024**3, "GFLOP/s")
    report("matmul 1024", seconds(run(lambda: a @ b), 10), flops)
    report("relu(matmul(a, b) + c) 1024", seconds(run(lambda: nn.relu(a @ b + c)), 10), flops)
    eight = lambda: chain(x, y, mx.maximum, mx.abs)
    report("chain_of_8, 2^24", seconds(run(eight), 2), milliseconds)
    try:
        compiled = mx.compile(lambda p, q: chain(p, q, mx.maximum, mx.abs))
        report("chain_of_8, 2^24, compiled", seconds(run(lambda: compiled(x, y)), 2), milliseconds)
    except RuntimeError as error:  # it needs a compiler at run time
        print(f"chain_of_8, compiled, is left out: {str(error).strip().splitlines()[0]}")
    report("sum, 2^24", seconds(run(x.sum), 10), rate(4 * x.size, "GB/s"))
    report("softmax 16384 x 1024", seconds(run(lambda: mx.softmax(rows, 1)), 3), milliseconds)
    norm = lambda: mx.fast.layer_norm(rows, weight, bias, 1e-5)
    report("layer_norm 16384 x 1024", seconds(run(norm), 3), milliseconds)
    small = mx.ones(16)
    mx.eval(small)
    report("add_one, 16 elements", seconds(run(lambda: small + 1), 5000), lambda took: f"{took * 1e6:.2f} us")


def main():
    benches = {"numpy": numpy_bench, "mlx": mlx_bench}
    for name in sys.argv[1:] or benches:
        try:
            benches[name]()
        except ImportError as error:
            print(f"{name} is left out: {error}")


if __name__ == "__main__":
    main()
