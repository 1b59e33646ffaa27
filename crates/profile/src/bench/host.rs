//! The timer and memory.

use std::hint::black_box;

use discnice_graybox::mac::Region;
use discnice_graybox::toolbox::Timer;

use super::figure;
use crate::store::{Figure, FigureName, Unit};

/// Repetitions; each is a mean over many operations.
const REPETITIONS: usize = 15;

pub fn measure() -> Vec<Figure> {
    let nanos = Unit::Nanoseconds;
    let (zeroing, access) = memory();
    [
        figure(FigureName::TimerCost, nanos, timer(), None),
        figure(FigureName::PageZeroing, nanos, zeroing, None),
        figure(FigureName::MemoryAccess, nanos, access, None),
        figure(FigureName::SwapAccess, nanos, swap(), None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn timer() -> Vec<f64> {
    const CALLS: u32 = 100_000;
    let once = || {
        let start = Timer::start();
        for _ in 0..CALLS {
            black_box(Timer::start());
        }
        start.elapsed().0 as f64 / f64::from(CALLS)
    };
    (0..REPETITIONS).map(|_| once()).collect()
}

/// Mean time of a page at the first and at a later touch, over 16 MiB.
fn memory() -> (Vec<f64>, Vec<f64>) {
    const BYTES: usize = 16 << 20;
    let (mut zeroing, mut access) = (Vec::new(), Vec::new());
    // The first round warms the processor up and is not counted.
    for round in 0..=REPETITIONS {
        let Ok(mut region) = Region::reserve(BYTES) else { break };
        let mut mean = || {
            let (mut pages, mut sum) = (0u32, 0);
            region.touch(0, BYTES, |nanos| {
                pages += 1;
                sum += nanos;
                true
            });
            sum as f64 / f64::from(pages)
        };
        let (first, second) = (mean(), mean());
        if round > 0 {
            zeroing.push(first);
            access.push(second);
        }
    }
    (zeroing, access)
}

/// Time of a page that has been sent to swap; nothing without swap.
fn swap() -> Vec<f64> {
    const BYTES: usize = 4 << 20;
    let mut samples = Vec::new();
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 {
        return samples;
    }
    let Ok(mut region) = Region::reserve(BYTES) else { return samples };
    // Pages of one content would be stored as one number by compressed swap.
    region.fill(|| fastrand::u64(..));
    region.page_out();
    let page = rustix::param::page_size();
    // Swap is read ahead by a window of 8 pages; every 64th is a page of its own.
    for at in (0..BYTES).step_by(64 * page) {
        region.touch(at, at + page, |nanos| {
            samples.push(nanos as f64);
            true
        });
    }
    samples
}
