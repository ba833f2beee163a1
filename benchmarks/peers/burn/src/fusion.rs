//! What fuses: a chain of elementwise operations, softmax and layer norm, a training step.
use crate::measure::seconds_each;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{LayerNormConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData, activation};

/// Reads a, b, writes the result: three streams.
fn chain_of_8(device: &Device, exponent: u32) {
    let n = 1_usize << exponent;
    let a = Tensor::<1>::random([n], Distribution::Normal(0.0, 1.0), device);
    let b = Tensor::<1>::random([n], Distribution::Normal(0.0, 1.0), device);
    let mut y = a.clone();
    let time = seconds_each(device, 10, || {
        let t = a.clone() + b.clone();
        let t = t * a.clone();
        let t = activation::relu(t);
        let t = t - b.clone();
        let t = t * 0.5;
        let t = t.abs();
        let t = t + 1.0;
        y = t * b.clone();
    });
    println!(
        "chain_of_8, 2^{exponent}: {:.2} GB/s of 3 streams",
        12.0 * n as f64 / time / 1e9
    );
    assert!(y.sum().into_scalar::<f32>().is_finite());
}

fn rows_of_1024(device: &Device, rows: usize) {
    let x = Tensor::<2>::random([rows, 1024], Distribution::Normal(0.0, 1.0), device);
    let rate = |time: f64| 8.0 * (rows * 1024) as f64 / time / 1e9;
    let mut y = x.clone();
    let time = seconds_each(device, 10, || y = activation::softmax(x.clone(), 1));
    println!("softmax {rows} x 1024: {:.2} GB/s", rate(time));
    let norm = LayerNormConfig::new(1024).init(device);
    let time = seconds_each(device, 10, || y = norm.forward(x.clone()));
    println!("layer_norm {rows} x 1024: {:.2} GB/s", rate(time));
    assert!(y.sum().into_scalar::<f32>().is_finite());
}

#[derive(Module, Debug)]
struct Network {
    first: Linear,
    second: Linear,
    third: Linear,
}

impl Network {
    fn new(device: &Device) -> Self {
        Self {
            first: LinearConfig::new(64, 256).init(device),
            second: LinearConfig::new(256, 256).init(device),
            third: LinearConfig::new(256, 10).init(device),
        }
    }

    fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        let x = activation::relu(self.first.forward(images));
        let x = activation::relu(self.second.forward(x));
        self.third.forward(x)
    }
}

/// A network 64-256-256-10, a batch of 128, cross-entropy, Adam.
fn training_step(device: &Device) {
    let device = &device.clone().autodiff();
    let mut network = Some(Network::new(device)); // a step consumes it, so that nothing is copied
    let mut adam = AdamConfig::new().with_epsilon(1e-8).init();
    let images = Tensor::<2>::random([128, 64], Distribution::Uniform(0.0, 1.0), device);
    let labels: Vec<i32> = (0..128).map(|i| i % 10).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::from(labels.as_slice()), device);
    let cross_entropy = CrossEntropyLossConfig::new().init(device);
    let loss_of =
        |network: &Network| cross_entropy.forward(network.forward(images.clone()), labels.clone());
    let first = loss_of(network.as_ref().expect("a network")).into_scalar::<f32>();
    let mut step = || {
        let before = network.take().expect("a network");
        let gradients = loss_of(&before).backward();
        let gradients = GradientsParams::from_grads(gradients, &before);
        network = Some(adam.step(1e-3, before, gradients));
    };
    (0..20).for_each(|_| step());
    let time = seconds_each(device, 20, step);
    println!("training_step: {:.3} ms", time * 1e3);
    let last = loss_of(network.as_ref().expect("a network")).into_scalar::<f32>();
    assert!(last < first, "the loss did not fall");
}

pub fn run(device: &Device, small: bool) {
    let exponents: &[u32] = if small {
        &[20, 22, 24]
    } else {
        &[20, 22, 24, 26]
    };
    exponents
        .iter()
        .for_each(|&exponent| chain_of_8(device, exponent));
    let counts: &[usize] = if small { &[1024] } else { &[1024, 65536] };
    counts.iter().for_each(|&rows| rows_of_1024(device, rows));
    training_step(device);
}
