//! File-cache content detector (section 4.1): which parts of a file are in the page cache.
//!
//! Terms of the paper: a *prediction unit* is the part of a file that one probe speaks for; an
//! *access unit* is the part that a reordering program reads in one go.

mod errno;
mod estimate;
mod exact;
mod probing;
mod regions;
mod sweep;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use discnice_units::Bytes;

use crate::pagecache::{Means, Oracle, page_size};
use crate::toolbox::Timer;

use errno::from_errno;
pub use estimate::estimate;
pub use probing::{Sample, Verdicts, sample};
pub use regions::{Heisenberg, Region, Residency};

//= gray-box/4.1.2-prediction-unit
/// The paper's 5 MB, made so much less that a miss in every unit is 0.1 % of the file (a page of
/// 1000).
pub const PREDICTION_UNIT: Bytes = Bytes::new(1000 * 4096);

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
    let size = Bytes::new(crate::pagecache::file_size(fd).map_err(from_errno)?);
    let (mut oracle, page) = (Oracle::of(fd), Bytes::new(page_size()));
    if oracle.is_exact() && !options.probes_only {
        let grain = options.grain.map_or_else(|| default_grain(size), Bytes::new).max(page);
        if let Some((means, regions)) = exact::regions(fd, &mut oracle, size, grain) {
            let size = size.get();
            return Ok(Residency { size, means, regions, heisenberg: Heisenberg::default() });
        }
    }
    let unit = options.prediction_unit.map_or(PREDICTION_UNIT, Bytes::new).max(page);
    match by_sweep(fd, size, unit) {
        Err(error) if cannot_map(&error) => probing::residency(fd, size, unit),
        other => other,
    }
}

/// The residency by what the kernel maps around a touched page.
fn by_sweep(fd: i32, size: Bytes, unit: Bytes) -> io::Result<Residency> {
    let (size, unit) = (size.get(), unit.get());
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

fn default_grain(size: Bytes) -> Bytes {
    Bytes::new((size.get() / 16384).next_power_of_two().max(page_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grain_follows_the_size() {
        let grain = |size| default_grain(Bytes::new(size)).get();
        assert_eq!([grain(0), grain(64 << 20)], [page_size(); 2]);
        assert_eq!(grain(16 << 30), 1 << 20);
    }
}
