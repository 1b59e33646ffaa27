//! Regions by the paper's probing (sections 4.1.1 and 4.1.2): a random byte in each prediction unit.
//!
//! There is no fixed threshold. A page was not cached if the kernel charged the probe with disk
//! I/O. Where the kernel's account is silent, a probe missed if the thread had to wait *and* the
//! two-cluster split of all times puts it among the slow ones; reading each byte twice gives the
//! split a group that surely is fast.

use std::io;

use discnice_units::Bytes;

use crate::pagecache::{Errno, Means, Probe, page_size, probe};

use super::errno::from_errno;
use super::regions::{Heisenberg, Region, Residency, push_merged};
use crate::toolbox::{Timer, split};

/// The slow group must be this many times slower than the fast one to be called another level of
/// the store: cached reads alone differ by less.
const LEVEL_RATIO: f64 = 4.0;

/// A probe and where it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The byte probed.
    pub offset: u64,
    /// What was seen.
    pub probe: Probe,
}

/// One probe at a random byte of each prediction unit; none for a file under a page, which a
/// probe would bring in whole.
///
/// # Errors
/// As pread(2). A file that shrinks meanwhile yields fewer probes.
pub fn sample(fd: i32, size: Bytes, unit: Bytes) -> io::Result<Vec<Sample>> {
    let (size, unit) = (size.get(), unit.get());
    let mut samples = Vec::new();
    if size < page_size() {
        return Ok(samples);
    }
    for start in (0..size).step_by(usize::try_from(unit).unwrap_or(usize::MAX)) {
        samples.extend(at_random(fd, start, (start + unit).min(size))?);
    }
    Ok(samples)
}

//= gray-box/4.1.2-random-byte
/// Probes a random byte of `start .. end`; random, so that a second look, ours or another
/// program's, does not see the pages that the first brought in (section 4.1.2).
fn at_random(fd: i32, start: u64, end: u64) -> io::Result<Option<Sample>> {
    let offset = fastrand::u64(start..end);
    match probe(fd, offset) {
        Ok(probe) => Ok(Some(Sample { offset, probe })),
        Err(Errno(code))
            if io::Error::from_raw_os_error(code).kind() == io::ErrorKind::InvalidInput =>
        {
            Ok(None)
        }
        Err(error) => Err(from_errno(error)),
    }
}

//= gray-box/4.1.2-no-threshold
/// Tells hits from misses among probes that were made together.
#[derive(Debug, Clone, Copy)]
pub struct Verdicts {
    /// The kernel charges probes of this file system, so that no charge means a hit.
    charged: bool,
    /// Logarithm of the time that parts the fast from the slow; none if all are alike.
    cut: Option<f64>,
}

impl Verdicts {
    /// Learns from the probes.
    #[must_use]
    pub fn of<'a>(probes: impl Iterator<Item = &'a Probe> + Clone) -> Self {
        let charged = probes.clone().any(|probe| probe.disk_bytes > 0);
        let times: Vec<f64> = probes
            .flat_map(|probe| [probe.nanos, probe.again_nanos])
            .map(|nanos| (nanos.max(1) as f64).ln())
            .collect();
        let cut = split(&times)
            .filter(|split| split.high_mean - split.low_mean >= LEVEL_RATIO.ln())
            .map(|split| split.cut);
        Self { charged, cut }
    }

    /// Returns true if the probed page was in the cache.
    #[must_use]
    pub fn is_hit(&self, probe: &Probe) -> bool {
        if probe.disk_bytes > 0 {
            return false;
        }
        let slow = self.cut.is_some_and(|cut| (probe.nanos.max(1) as f64).ln() > cut);
        self.charged || !(slow && probe.waited)
    }
}

/// The residency of a file by one probe in each unit.
///
/// # Errors
/// As pread(2).
pub fn residency(fd: i32, size: Bytes, unit: Bytes) -> io::Result<Residency> {
    let timer = Timer::start();
    let samples = sample(fd, size, unit)?;
    let size = size.get();
    let verdicts = Verdicts::of(samples.iter().map(|sample| &sample.probe));
    let misses = samples.iter().filter(|sample| !verdicts.is_hit(&sample.probe)).count();
    let heisenberg = Heisenberg {
        probes: samples.len() as u64,
        pages_read: pages_read(&samples).max(misses as u64),
        time: timer.elapsed(),
    };
    let means = if samples.is_empty() && size > 0 { Means::Unknown } else { Means::Probe };
    let regions = regions(&samples, &verdicts, size);
    Ok(Residency { size, means, regions, heisenberg })
}

fn pages_read(samples: &[Sample]) -> u64 {
    let charged: u64 = samples.iter().map(|sample| sample.probe.disk_bytes).sum();
    charged.div_ceil(page_size())
}

/// Each byte is as its nearest probe.
fn regions(samples: &[Sample], verdicts: &Verdicts, size: u64) -> Vec<Region> {
    let page = page_size();
    let mut regions = Vec::new();
    let mut offset = 0;
    for (index, sample) in samples.iter().enumerate() {
        let end = match samples.get(index + 1) {
            Some(next) => u64::midpoint(sample.offset, next.offset) / page * page,
            None => size,
        };
        if end > offset {
            let length = end - offset;
            let cached_bytes = if verdicts.is_hit(&sample.probe) { length } else { 0 };
            push_merged(&mut regions, Region { offset, length, cached_bytes });
            offset = end;
        }
    }
    regions
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn seen(nanos: u64, disk_bytes: u64, waited: bool) -> Probe {
        Probe { nanos, again_nanos: 400, disk_bytes, waited }
    }

    //= gray-box/4.1.2-random-byte
    #[test]
    fn each_unit_is_probed_at_a_place_that_changes() {
        const UNIT: u64 = 1 << 20;
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(8 * UNIT).unwrap();
        let places = || -> Vec<u64> {
            let [size, unit] = [8 * UNIT, UNIT].map(Bytes::new);
            let samples = sample(file.as_raw_fd(), size, unit).unwrap();
            samples.iter().map(|sample| sample.offset).collect()
        };
        let (first, second) = (places(), places());
        for places in [&first, &second] {
            let units: Vec<u64> = places.iter().map(|place| place / UNIT).collect();
            assert_eq!(units, (0..8).collect::<Vec<_>>());
        }
        assert_ne!(first, second);
    }

    #[test]
    fn all_alike_are_hits() {
        let probes = [seen(500, 0, false), seen(900, 0, false), seen(450, 0, false)];
        let verdicts = Verdicts::of(probes.iter());
        assert!(probes.iter().all(|probe| verdicts.is_hit(probe)));
    }

    //= gray-box/4.1.2-no-threshold
    #[test]
    fn all_slow_are_misses_by_the_second_reading() {
        let probes = [seen(90_000, 0, true), seen(80_000, 0, true)];
        let verdicts = Verdicts::of(probes.iter());
        assert!(!probes.iter().any(|probe| verdicts.is_hit(probe)));
    }

    //= gray-box/2-observe
    #[test]
    fn a_preempted_hit_stays_a_hit() {
        let probes = [seen(500, 0, false), seen(4_000_000, 0, false), seen(90_000, 4096, true)];
        let verdicts = Verdicts::of(probes.iter());
        let hits: Vec<bool> = probes.iter().map(|probe| verdicts.is_hit(probe)).collect();
        assert_eq!(hits, [true, true, false]);
    }

    //= gray-box/4.1.2-prediction-unit
    #[test]
    fn bytes_follow_their_nearest_probe() {
        let samples = [
            Sample { offset: 1 << 20, probe: seen(500, 0, false) },
            Sample { offset: 3 << 20, probe: seen(90_000, 4096, true) },
        ];
        let verdicts = Verdicts::of(samples.iter().map(|sample| &sample.probe));
        let half = 2 << 20;
        assert_eq!(
            regions(&samples, &verdicts, 4 << 20),
            [
                Region { offset: 0, length: half, cached_bytes: half },
                Region { offset: half, length: half, cached_bytes: 0 },
            ]
        );
    }
}
