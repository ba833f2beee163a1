//! The measurements of kiln's benchmarks on Burn with its wgpu backend, lazy and fused.
//!
//!     cargo run --release --manifest-path benchmarks/peers/burn/Cargo.toml
//!
//! Arguments: which of host_cost, matmul, memory and fusion to run (all unless given); `small` leaves
//! sizes for GPUs out.
mod fusion;
mod measure;

use burn::tensor::{Device, Distribution, Tensor, activation};
use measure::{seconds, seconds_each};

fn host_cost(device: &Device) {
    const CALLS: u32 = 5000;
    let per_call = |time: f64| time / f64::from(CALLS) * 1e6;
    let x = Tensor::<1>::ones([16], device);
    let mut y = x.clone();
    let time = seconds(device, CALLS, || y = x.clone() + 1.0);
    assert_eq!(
        y.clone().into_data().try_to_vec::<f32>().expect("f32")[0],
        2.0
    );
    println!("add_one, 16 elements: {:.2} us a call", time * 1e6);
    let mut held = vec![x.clone(); CALLS as usize];
    let time = seconds(device, 1, || {
        for (i, result) in held.iter_mut().enumerate() {
            *result = x.clone() + i as f32;
        }
    });
    println!("add_held, 16 elements: {:.2} us a call", per_call(time));
    let time = seconds(device, 1, || {
        y = x.clone();
        for _ in 0..CALLS {
            y = y.clone() + 1.0;
        }
    });
    assert_eq!(y.into_data().try_to_vec::<f32>().expect("f32")[0], 5001.0);
    println!(
        "add_one_chained, 16 elements: {:.2} us a call",
        per_call(time)
    );
}

fn matmul(device: &Device, n: usize, calls: u32) {
    let a = Tensor::<3>::random([1, n, n], Distribution::Uniform(-0.5, 0.5), device);
    let b = Tensor::<3>::random([1, n, n], Distribution::Uniform(-0.5, 0.5), device);
    let bias = Tensor::<3>::random([1, n, n], Distribution::Uniform(0.0, 1.0), device);
    let rate = |time: f64| 2.0 * (n as f64).powi(3) / time / 1e12;
    let mut c = a.clone();
    let plain = seconds_each(device, calls, || c = a.clone().matmul(b.clone()));
    println!("matmul {n} f32: {:.3} TFLOP/s", rate(plain));
    let fused = seconds_each(device, calls, || {
        c = activation::relu(a.clone().matmul(b.clone()) + bias.clone());
    });
    println!("matmul + bias + relu {n} f32: {:.3} TFLOP/s", rate(fused));
    assert!(c.sum().into_scalar::<f32>().is_finite());
}

fn memory(device: &Device, rows: usize) {
    let x = Tensor::<2>::random([rows, 1024], Distribution::Normal(0.0, 1.0), device);
    let row = Tensor::<2>::random([1, 1024], Distribution::Normal(0.0, 1.0), device);
    let rate = |words: f64, time: f64| 4.0 * words * (rows * 1024) as f64 / time / 1e9;
    let mut y = x.clone();
    let time = seconds_each(device, 10, || y = activation::gelu(x.clone()));
    println!(
        "elementwise_gelu {rows} x 1024: {:.2} GB/s",
        rate(2.0, time)
    );
    let time = seconds_each(device, 10, || y = x.clone() + row.clone());
    println!(
        "elementwise_broadcast_add {rows} x 1024: {:.2} GB/s",
        rate(2.0, time)
    );
    let time = seconds_each(device, 10, || y = x.clone().sum_dim(1));
    println!("sum_rows {rows} x 1024: {:.2} GB/s", rate(1.0, time));
    let time = seconds_each(device, 10, || y = x.clone().sum_dim(0));
    println!("sum_columns {rows} x 1024: {:.2} GB/s", rate(1.0, time));
    let mut total = x.clone().sum();
    let time = seconds_each(device, 10, || total = x.clone().sum());
    println!("sum_all {rows} x 1024: {:.2} GB/s", rate(1.0, time));
    assert!(total.into_scalar::<f32>().is_finite());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let small = arguments.iter().any(|a| a == "small");
    let groups: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|a| *a != "small")
        .collect();
    let wanted = |group: &str| groups.is_empty() || groups.contains(&group);

    let device = Device::wgpu(Default::default());
    println!("Burn 0.23.0-pre.1, wgpu backend (WGSL), {device:?}");
    if wanted("host_cost") {
        host_cost(&device);
    }
    if wanted("matmul") {
        let sizes: &[usize] = if small {
            &[256, 512]
        } else {
            &[512, 1024, 2048, 4096]
        };
        sizes
            .iter()
            .for_each(|&n| matmul(&device, n, if small { 3 } else { 20 }));
    }
    if wanted("memory") {
        let counts: &[usize] = if small { &[1024] } else { &[1024, 65536] };
        counts.iter().for_each(|&rows| memory(&device, rows));
    }
    if wanted("fusion") {
        fusion::run(&device, small);
    }
}
