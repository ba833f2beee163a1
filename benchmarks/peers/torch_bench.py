#!/usr/bin/env python3
"""The measurements of kiln's benchmarks, in PyTorch's eager mode: f32 without TF32 and f16, on CUDA where there is one.

    python3 benchmarks/peers/torch_bench.py
"""
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


def host_cost():
    x = torch.ones(16, device=DEVICE)
    print(f"add_one, 16 elements: {seconds(lambda: x + 1, 5000) * 1e6:.2f} us a call")
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


if __name__ == "__main__":
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {name}")
    host_cost()
    big = DEVICE == "cuda"
    for size in (512, 1024, 2048, 4096) if big else (256, 512):
        matmul(size, torch.float32, 20)
    for size in (1024, 4096) if big else ():
        matmul(size, torch.float16, 20)
    for count in (1024, 65536) if big else (1024,):
        memory(count)
