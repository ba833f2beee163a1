#!/usr/bin/env python3
"""The measurements of kiln's benchmarks in PyTorch: f32 without TF32 and f16, on CUDA where there is one.

Eager mode, and torch.compile for what fuses.

    python3 benchmarks/peers/torch_bench.py            # all
    python3 benchmarks/peers/torch_bench.py fusion     # or host_cost, matmul, memory
"""
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds(f, calls):
    """Seconds a call: the median of five rounds, each queued as a whole and waited for once."""
    for _ in range(3):
        f()
    synchronize()
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            f()
        synchronize()
        rounds.append((time.perf_counter() - start) / calls)
    return sorted(rounds)[2]


def compiled(f, **options):
    """f by torch.compile, tried once; None, and why, where that cannot be had."""
    try:
        g = torch.compile(f, dynamic=False, **options)  # or a second size would be compiled for all
        g()
        return g
    except Exception as error:  # of many kinds: no Triton, no compiler, an old GPU
        print(f"torch.compile is left out: {str(error).strip().splitlines()[0]}")
        return None


def eager_and_compiled(name, f, calls, text):
    """Prints text(seconds a call) of f as it is and compiled, if their results agree."""
    print(f"{name}, eager: {text(seconds(f, calls))}")
    g = compiled(f)
    if g is None:
        return
    torch.testing.assert_close(g(), f(), rtol=1e-4, atol=1e-3)
    print(f"{name}, compiled: {text(seconds(g, calls))}")


def host_cost():
    x = torch.ones(16, device=DEVICE)
    print(f"add_one, 16 elements: {seconds(lambda: x + 1, 5000) * 1e6:.2f} us a call")
    held = [x] * 5000

    def hold():
        for i in range(5000):
            held[i] = x + i

    def chain():
        y = x
        for _ in range(5000):
            y = y + 1

    print(f"add_held, 16 elements: {seconds(hold, 1) / 5000 * 1e6:.2f} us a call")
    print(f"add_one_chained, 16 elements: {seconds(chain, 1) / 5000 * 1e6:.2f} us a call")
    leaf = torch.ones(16, device=DEVICE, requires_grad=True)
    print(f"add_one, tracked: {seconds(lambda: leaf + 1, 5000) * 1e6:.2f} us a call")


def matmul(n, dtype, calls):
    a = torch.rand(1, n, n, device=DEVICE).sub_(0.5).to(dtype)
    b = torch.rand(1, n, n, device=DEVICE).sub_(0.5).to(dtype)
    bias = torch.rand(1, n, n, device=DEVICE).to(dtype)
    rate = lambda s: 2 * n**3 / s / 1e12
    print(f"matmul {n} {dtype}: {rate(seconds(lambda: a @ b, calls)):.2f} TFLOP/s")
    print(f"matmul {n} {dtype}, lhs transposed: {rate(seconds(lambda: a.mT @ b, calls)):.2f} TFLOP/s")
    print(f"matmul {n} {dtype}, rhs transposed: {rate(seconds(lambda: a @ b.mT, calls)):.2f} TFLOP/s")
    print(f"baddbmm + relu {n} {dtype}: {rate(seconds(lambda: torch.baddbmm(bias, a, b).relu_(), calls)):.2f} TFLOP/s")
    leaves = [t.clone().requires_grad_() for t in (a, b, bias)]
    ones = torch.ones(1, n, n, device=DEVICE, dtype=dtype)

    def step():
        torch.autograd.grad(torch.relu(torch.baddbmm(leaves[2], leaves[0], leaves[1])), leaves, ones)

    print(f"baddbmm + relu + backward {n} {dtype}: {3 * rate(seconds(step, calls)):.2f} TFLOP/s")


def memory(rows):
    x = torch.randn(rows, 1024, device=DEVICE)
    row = torch.randn(1024, device=DEVICE)
    for name, words, f in (
        ("elementwise_gelu", 2, lambda: torch.nn.functional.gelu(x)),
        ("elementwise_broadcast_add", 2, lambda: x + row),
        ("transpose_copy", 2, lambda: x.T.contiguous()),
        ("sum_rows", 1, lambda: x.sum(1)),
        ("sum_columns", 1, lambda: x.sum(0)),
        ("sum_all", 1, lambda: x.sum()),
    ):
        print(f"{name} {rows} x 1024: {4 * words * x.numel() / seconds(f, 10) / 1e9:.1f} GB/s")


def matmul_bias_relu(n, calls):
    a, b, c = (torch.rand(n, n, device=DEVICE).mul_(2).sub_(1) for _ in range(3))
    rate = lambda s: f"{2 * n**3 / s / 1e12:.3f} TFLOP/s"
    eager_and_compiled(f"relu(matmul(a, b) + c) {n}", lambda: torch.relu(a @ b + c), calls, rate)


def chain_of_8(exponent):
    a, b = (torch.randn(2**exponent, device=DEVICE) for _ in range(2))

    def chain():
        t = a + b
        t = t * a
        t = torch.relu(t)
        t = t - b
        t = t * 0.5
        t = torch.abs(t)
        t = t + 1
        return t * b

    rate = lambda s: f"{12 * a.numel() / s / 1e9:.1f} GB/s of 3 streams"
    eager_and_compiled(f"chain_of_8, 2^{exponent}", chain, 10, rate)


def rows_of_1024(rows):
    x = torch.randn(rows, 1024, device=DEVICE)
    weight, bias = (torch.full((1024,), value, device=DEVICE) for value in (1.5, 0.5))
    rate = lambda s: f"{8 * x.numel() / s / 1e9:.1f} GB/s"
    for name, f in (
        ("softmax", lambda: torch.softmax(x, 1)),
        ("layer_norm", lambda: torch.nn.functional.layer_norm(x, (1024,), weight, bias)),
    ):
        eager_and_compiled(f"{name} {rows} x 1024", f, 10, rate)


def training_step(name, adam_options, compile_options=None):
    """A network 64-256-256-10, a batch of 128, cross-entropy, Adam."""
    nn = torch.nn
    images, labels = torch.rand(128, 64, device=DEVICE), torch.arange(128, device=DEVICE) % 10
    layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    model = nn.Sequential(*layers).to(DEVICE)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, **adam_options)
    loss = lambda: nn.functional.cross_entropy(model(images), labels)
    update = lambda: adam.step()
    first = loss().item()
    if compile_options is not None:
        loss().backward()  # Adam's first step needs gradients
        loss, update = compiled(loss, **compile_options), compiled(update, **compile_options)
        if loss is None or update is None:
            return

    def step():
        torch.compiler.cudagraph_mark_step_begin()  # where there are CUDA graphs: the last results are done with
        adam.zero_grad()
        loss().backward()
        update()

    try:
        for _ in range(20):
            step()
        print(f"training_step, {name}: {seconds(step, 20) * 1e3:.3f} ms")
        if not loss().item() < first:
            sys.exit("the loss did not fall")
    except RuntimeError as error:  # a backward pass is compiled when it is first run
        print(f"training_step, {name}, is left out: {str(error).strip().splitlines()[0]}")


def training_steps():
    on_gpu = DEVICE == "cuda"
    training_step("eager", {})
    training_step("eager, fused Adam", {"fused": True})
    training_step("compiled", {"capturable": on_gpu}, {})
    if on_gpu:
        training_step("compiled, CUDA graphs", {"capturable": True}, {"mode": "reduce-overhead"})


def fusion(big):
    for size, calls in ((512, 20), (1024, 20), (4096, 20)) if big else ((512, 20), (1024, 20)):
        matmul_bias_relu(size, calls)
    for exponent in (20, 22, 24, 26) if big else (20, 22, 24):
        chain_of_8(exponent)
    for rows in (1024, 65536) if big else (1024, 16384):
        rows_of_1024(rows)
    training_steps()


def main():
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {name}")
    big = DEVICE == "cuda"
    wanted = sys.argv[1:] or ["host_cost", "matmul", "memory", "fusion"]
    if "host_cost" in wanted:
        host_cost()
    if "matmul" in wanted:
        for size in (512, 1024, 2048, 4096) if big else (256, 512, 1024):
            matmul(size, torch.float32, 20)
        for size in (1024, 4096) if big else ():
            matmul(size, torch.float16, 20)
    if "memory" in wanted:
        for count in (1024, 65536) if big else (1024, 16384):
            memory(count)
    if "fusion" in wanted:
        fusion(big)


if __name__ == "__main__":
    main()
