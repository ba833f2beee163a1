//! How calls are timed.
use burn::tensor::Device;
use std::time::Instant;

/// Seconds a call: the median of five rounds, each queued as a whole and waited for once.
pub fn seconds(device: &Device, calls: u32, mut f: impl FnMut()) -> f64 {
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

/// The same of calls that are handed to the device one by one: of several in one queue those whose
/// results are dropped might never run.
pub fn seconds_each(device: &Device, calls: u32, mut f: impl FnMut()) -> f64 {
    seconds(device, calls, || {
        f();
        device.flush().expect("the device works");
    })
}
