//! A fast timer, calibrated once: the processor's time stamp counter where the kernel itself
//! trusts it, else `CLOCK_MONOTONIC`.
#![allow(unsafe_code, reason = "reading the time stamp counter")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use discnice_units::Nanos;

/// How long the counter is compared with the clock, once in a process.
const CALIBRATION: Duration = Duration::from_micros(500);

//= gray-box/5-timer
/// Measures short times: `let t = Timer::start(); …; t.elapsed()`.
#[derive(Debug, Clone, Copy)]
pub enum Timer {
    /// Started at this count of the time stamp counter.
    Counter(u64),
    /// Started at this moment of the monotonic clock.
    Clock(Instant),
}

impl Timer {
    /// Starts now. The first call in a process takes half a millisecond for the calibration.
    #[must_use]
    pub fn start() -> Self {
        match nanos_per_count() {
            Some(_) => Self::Counter(counter()),
            None => Self::Clock(Instant::now()),
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(self) -> Nanos {
        self.until(Self::start())
    }

    /// Time from this start to a later one.
    #[must_use]
    pub fn until(self, later: Self) -> Nanos {
        match (self, later) {
            (Self::Counter(start), Self::Counter(end)) => {
                // A thread that moved to a core with a counter a little behind has spent no time.
                let counts = end.saturating_sub(start);
                Nanos((counts as f64 * nanos_per_count().unwrap_or(1.0)) as u64)
            }
            (Self::Clock(start), Self::Clock(end)) => {
                let passed = end.saturating_duration_since(start).as_nanos();
                Nanos(u64::try_from(passed).unwrap_or(u64::MAX))
            }
            // A process uses one kind only.
            _ => Nanos(0),
        }
    }
}

/// Nanoseconds of one count, or nothing where the counter is not to be trusted.
fn nanos_per_count() -> Option<f64> {
    static PER_COUNT: OnceLock<Option<f64>> = OnceLock::new();
    *PER_COUNT.get_or_init(|| kernel_trusts_counter().then(calibrate))
}

/// The kernel uses the counter as its own clock only if it is constant, never stops and agrees
/// between the cores (Documentation/timers/timekeeping).
fn kernel_trusts_counter() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string(path).is_ok_and(|source| source.trim() == "tsc")
}

fn calibrate() -> f64 {
    let (clock, start) = clock_and_counter();
    while clock.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    let (later, end) = clock_and_counter();
    (later - clock).as_nanos() as f64 / end.saturating_sub(start).max(1) as f64
}

/// Reads both at one moment: of a few tries the one that was interrupted least.
fn clock_and_counter() -> (Instant, u64) {
    let tries = (0..4).map(|_| {
        let before = counter();
        let now = Instant::now();
        (counter().saturating_sub(before), now, before)
    });
    let (_, now, count) = tries.min_by_key(|(apart, ..)| *apart).unwrap_or((0, Instant::now(), 0));
    (now, count)
}

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: rdtsc exists on every x86-64 processor and only reads a register.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    //= gray-box/5-timer
    #[test]
    fn agrees_with_the_clock() {
        let (timer, clock) = (Timer::start(), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (timer, clock) = (timer.elapsed().0 as f64, clock.elapsed().as_nanos() as f64);
        assert!((timer / clock - 1.0).abs() < 0.02, "timer {timer} clock {clock}");
    }
}
