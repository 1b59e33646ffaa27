//! The timer and memory.

use std::hint::black_box;

use crate::mac::Region;
use crate::toolbox::Timer;

use super::figures::figure;
use crate::profile::store::{Figure, FigureName, FigureUnit};

/// Repetitions in a round; each is a mean over many operations.
const REPETITIONS: usize = 3;

/// What has been seen so far, in nanoseconds.
#[derive(Default)]
pub struct Host {
    timer: Vec<f64>,
    zeroing: Vec<f64>,
    access: Vec<f64>,
    swap: Vec<f64>,
}

impl Host {
    /// One round.
    pub fn sample(&mut self) {
        self.timer.extend((0..REPETITIONS).map(|_| timer()));
        self.memory();
        self.swap.extend(swap());
    }

    pub fn figures(self) -> Vec<Figure> {
        let nanos = FigureUnit::Nanoseconds;
        [
            figure(FigureName::TimerCost, nanos, self.timer, None),
            figure(FigureName::PageZeroing, nanos, self.zeroing, None),
            figure(FigureName::MemoryAccess, nanos, self.access, None),
            figure(FigureName::SwapAccess, nanos, self.swap, None),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Mean time of a page at the first and at a later touch, over 16 MiB.
    fn memory(&mut self) {
        const BYTES: usize = 16 << 20;
        // The first repetition warms the processor up and is not counted.
        for repetition in 0..=REPETITIONS {
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
            if repetition > 0 {
                self.zeroing.push(first);
                self.access.push(second);
            }
        }
    }
}

fn timer() -> f64 {
    const CALLS: u32 = 100_000;
    let start = Timer::start();
    for _ in 0..CALLS {
        black_box(Timer::start());
    }
    start.elapsed().0 as f64 / f64::from(CALLS)
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
