//! The measurements of kiln's benchmarks on Burn, eager calls on its wgpu backend.
//!
//!     cargo run --release --manifest-path benchmarks/peers/burn/Cargo.toml
use burn::tensor::{Device, Distribution, Tensor, activation};
use std::time::Instant;

/// Seconds a call: the median of five rounds, each queued as a whole and waited for once.
fn seconds(device: &Device, calls: u32, mut f: impl FnMut()) -> f64 {
    for _ in 0..3 {
        f();
    }
    device.sync().expect("the device works");
    let mut rounds: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                f();
            }
            device.sync().expect("the device works");
            start.elapsed().as_secs_f64() / f64::from(calls)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[2]
}

fn host_cost(device: &Device) {
    let x = Tensor::<1>::ones([16], device);
    let mut y = x.clone();
    let time = seconds(device, 5000, || y = x.clone() + 1.0);
    assert_eq!(y.into_data().to_vec::<f32>().expect("f32")[0], 2.0);
    println!("add_one, 16 elements: {:.2} us a call", time * 1e6);
}

fn matmul(device: &Device, n: usize, calls: u32) {
    let a = Tensor::<3>::random([1, n, n], Distribution::Uniform(-0.5, 0.5), device);
    let b = Tensor::<3>::random([1, n, n], Distribution::Uniform(-0.5, 0.5), device);
    let bias = Tensor::<3>::random([1, n, n], Distribution::Uniform(0.0, 1.0), device);
    let rate = |time: f64| 2.0 * (n as f64).powi(3) / time / 1e12;
    let mut c = a.clone();
    let plain = seconds(device, calls, || c = a.clone().matmul(b.clone()));
    println!("matmul {n} f32: {:.2} TFLOP/s", rate(plain));
    let fused = seconds(device, calls, || {
        c = activation::relu(a.clone().matmul(b.clone()) + bias.clone());
    });
    println!("matmul + bias + relu {n} f32: {:.2} TFLOP/s", rate(fused));
    assert!(c.sum().into_scalar::<f32>().is_finite());
}

fn memory(device: &Device, rows: usize) {
    let x = Tensor::<2>::random([rows, 1024], Distribution::Normal(0.0, 1.0), device);
    let row = Tensor::<2>::random([1, 1024], Distribution::Normal(0.0, 1.0), device);
    let rate = |words: f64, time: f64| 4.0 * words * (rows * 1024) as f64 / time / 1e9;
    let mut y = x.clone();
    let time = seconds(device, 10, || y = activation::gelu(x.clone()));
    println!("elementwise_gelu {rows} x 1024: {:.1} GB/s", rate(2.0, time));
    let time = seconds(device, 10, || y = x.clone() + row.clone());
    println!("elementwise_broadcast_add {rows} x 1024: {:.1} GB/s", rate(2.0, time));
    let time = seconds(device, 10, || y = x.clone().sum_dim(1));
    println!("sum_rows {rows} x 1024: {:.1} GB/s", rate(1.0, time));
    let time = seconds(device, 10, || y = x.clone().sum_dim(0));
    println!("sum_columns {rows} x 1024: {:.1} GB/s", rate(1.0, time));
    let mut total = x.clone().sum();
    let time = seconds(device, 10, || total = x.clone().sum());
    println!("sum_all {rows} x 1024: {:.1} GB/s", rate(1.0, time));
    assert!(total.into_scalar::<f32>().is_finite());
}

fn main() {
    let device = Device::wgpu(Default::default());
    println!("Burn 0.23.0-pre.1, wgpu backend (WGSL), {device:?}");
    host_cost(&device);
    for n in [512, 1024, 2048, 4096] {
        matmul(&device, n, 20);
    }
    for rows in [1024, 65536] {
        memory(&device, rows);
    }
}
