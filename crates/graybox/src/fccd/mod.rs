//! File-cache content detector (section 4.1): which parts of a file are in the page cache.
//!
//! Terms of the paper: a *prediction unit* is the part of a file that one probe speaks for; an
//! *access unit* is the part that a reordering program reads in one go.

mod estimate;
mod exact;
mod probing;
mod sweep;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::pagecache::{Errno, Means, Oracle, page_size};
use discnice_units::Nanos;

use crate::toolbox::Timer;

pub use estimate::estimate;
pub use probing::{Sample, Verdicts, sample};

//= gray-box/4.1.2-prediction-unit
/// The paper's 5 MB, made so much less that a miss in every unit is 0.1 % of the file (a page of
/// 1000).
pub const PREDICTION_UNIT: u64 = 1000 * 4096;

/// A part of a file, and how much of it is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// Bytes; never 0.
    pub length: u64,
    /// Bytes that are cached, at most `length`.
    pub cached_bytes: u64,
}

/// What the probing itself did to the cache: the paper's Heisenberg effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heisenberg {
    /// Probes made.
    pub probes: u64,
    /// Pages that the probes brought in.
    pub pages_read: u64,
    /// Time that the probing took.
    pub time: Nanos,
}

/// The residency of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residency {
    /// Size of the file in bytes.
    pub size: u64,
    /// How it was found out.
    pub means: Means,
    /// Disjoint, in file order, covering the file. Neighbours that are both wholly cached, or
    /// both not at all, are one region. Empty if `means` is [`Means::Unknown`].
    pub regions: Vec<Region>,
    /// The effect of the observation on the observed.
    pub heisenberg: Heisenberg,
}

impl Residency {
    /// Cached bytes of the file; `None` if unknown.
    #[must_use]
    pub fn cached_bytes(&self) -> Option<u64> {
        let sum = self.regions.iter().map(|region| region.cached_bytes).sum();
        (self.means != Means::Unknown).then_some(sum)
    }

    /// Cached part of the file, at most 1; an empty file counts as cached. `None` if unknown.
    #[must_use]
    pub fn cached_frac(&self) -> Option<f64> {
        let cached = self.cached_bytes()?;
        Some(if self.size == 0 { 1.0 } else { cached as f64 / self.size as f64 })
    }

    /// Cached bytes of `offset .. offset + length`, spread evenly within a partly cached region.
    #[must_use]
    pub fn cached_within(&self, offset: u64, length: u64) -> u64 {
        let end = offset + length;
        let first = self.regions.partition_point(|region| region.offset + region.length <= offset);
        let touching = self.regions[first..].iter().take_while(|region| region.offset < end);
        touching
            .map(|region| {
                let overlap = end.min(region.offset + region.length) - offset.max(region.offset);
                (u128::from(region.cached_bytes) * u128::from(overlap) / u128::from(region.length))
                    as u64
            })
            .sum()
    }
}

/// How to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Resolution of the exact means in bytes; without it a page for files up to 64 MiB and
    /// 1/16384 of larger ones.
    pub grain: Option<u64>,
    /// What one page read by the probing speaks for; without it [`PREDICTION_UNIT`]. Should not be
    /// larger than the access unit of the programs that read the file (figure 1).
    pub prediction_unit: Option<u64>,
    /// Use probes even where an exact means is honest: to measure the probes.
    pub probes_only: bool,
}

//= gray-box/4.1.1-probe
/// Finds out the residency of a regular file by the best means that is honest for it.
///
/// The descriptor's open file description loses its read-ahead if probes are needed: use one of
/// your own.
///
/// # Errors
/// As fstat(2) and pread(2).
pub fn residency(file: &File, options: &Options) -> io::Result<Residency> {
    let fd = file.as_raw_fd();
    let size = crate::pagecache::file_size(fd).map_err(from_errno)?;
    let mut oracle = Oracle::of(fd);
    if oracle.is_exact() && !options.probes_only {
        let grain = options.grain.unwrap_or_else(|| default_grain(size)).max(page_size());
        if let Some((means, regions)) = exact::regions(fd, &mut oracle, size, grain) {
            return Ok(Residency { size, means, regions, heisenberg: Heisenberg::default() });
        }
    }
    let unit = options.prediction_unit.unwrap_or(PREDICTION_UNIT).max(page_size());
    match by_sweep(fd, size, unit) {
        Err(error) if cannot_map(&error) => probing::residency(fd, size, unit),
        other => other,
    }
}

/// The residency by what the kernel maps around a touched page.
fn by_sweep(fd: i32, size: u64, unit: u64) -> io::Result<Residency> {
    if size < page_size() {
        // A probe would bring in all of it.
        let means = if size == 0 { Means::Probe } else { Means::Unknown };
        return Ok(Residency {
            size,
            means,
            regions: Vec::new(),
            heisenberg: Heisenberg::default(),
        });
    }
    let timer = Timer::start();
    let page = page_size();
    let mut look = |start: u64, at: u64| {
        crate::pagecache::look(fd, start * page, at * page).map_err(from_errno)
    };
    let mut found = sweep::sweep(size.div_ceil(page), size / unit, &mut look)?;
    if let Some(last) = found.regions.last_mut() {
        last.length = size - last.offset;
        last.cached_bytes = last.cached_bytes.min(last.length);
    }
    let heisenberg =
        Heisenberg { probes: found.looks, pages_read: found.misses, time: timer.elapsed() };
    Ok(Residency { size, means: Means::Probe, regions: found.regions, heisenberg })
}

/// Returns true if the error says that the file system cannot map the file, or a kernel before 5.14
/// cannot populate.
fn cannot_map(error: &io::Error) -> bool {
    let codes = [libc::ENODEV, libc::EINVAL, libc::EACCES, libc::EPERM, libc::ENOENT];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn default_grain(size: u64) -> u64 {
    (size / 16384).next_power_of_two().max(page_size())
}

fn from_errno(error: Errno) -> io::Error {
    io::Error::from_raw_os_error(error.0)
}

/// Adds a region, or widens the last one if both are wholly cached or both not at all.
fn push_merged(regions: &mut Vec<Region>, next: Region) {
    if let Some(last) = regions.last_mut() {
        let both_empty = last.cached_bytes == 0 && next.cached_bytes == 0;
        let both_full = last.cached_bytes == last.length && next.cached_bytes == next.length;
        if both_empty || both_full {
            last.length += next.length;
            last.cached_bytes += next.cached_bytes;
            return;
        }
    }
    regions.push(next);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_regions() {
        let regions = vec![
            Region { offset: 0, length: 100, cached_bytes: 100 },
            Region { offset: 100, length: 100, cached_bytes: 0 },
            Region { offset: 200, length: 100, cached_bytes: 50 },
        ];
        let heisenberg = Heisenberg::default();
        let file = Residency { size: 300, means: Means::Cachestat, regions, heisenberg };
        assert_eq!(file.cached_bytes(), Some(150));
        assert_eq!(file.cached_frac(), Some(0.5));
        assert_eq!(file.cached_within(50, 100), 50);
        assert_eq!(file.cached_within(0, 300), 150);
        assert_eq!(file.cached_within(250, 50), 25);
        assert_eq!(file.cached_within(300, 0), 0);
    }

    #[test]
    fn grain_follows_the_size() {
        assert_eq!(default_grain(0), page_size());
        assert_eq!(default_grain(64 << 20), page_size());
        assert_eq!(default_grain(16 << 30), 1 << 20);
    }
}
