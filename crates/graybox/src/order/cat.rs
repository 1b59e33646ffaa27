//! Writes one file's bytes, cached access units first (`gbp -mem -out`, section 4.1.2).

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use discnice_units::Bytes;
use rustix::fs::{Advice, fadvise};

use super::error::OrderError;
use super::units::{Unit, units};
use crate::fccd::{self, Residency, estimate};
use crate::mac::Region;
use crate::pagecache::Oracle;

/// How to cut the file up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatOptions {
    /// Access unit in bytes: what is read in one go; large enough to make up for a seek.
    pub access_unit: u64,
    /// Length of a record in bytes: no access unit ends inside one.
    pub align: u64,
}

impl Default for CatOptions {
    fn default() -> Self {
        Self { access_unit: 1 << 20, align: 1 }
    }
}

/// Bytes copied at a time: as cat(1), so that they stay in the processor's cache.
const BUFFER: usize = 128 << 10;

/// Bytes read ahead in one go; up to two such stretches are under way.
const AHEAD: u64 = 1 << 20;

//= gray-box/4.1.2-gbp-out
/// Writes the bytes that the file has now, each once, whole access units in best order. If the
/// file's size is no multiple of the record length, its rest comes last.
///
/// # Errors
/// As [`OrderError`] says; a file that shrank meanwhile could not be read.
pub fn cat(file: &File, options: &CatOptions, out: &mut dyn Write) -> Result<(), OrderError> {
    let size = file.metadata().map_err(OrderError::Input)?.len();
    // On a page boundary: the kernel copies to others a few per cent slower.
    let mut buffer = Region::reserve(BUFFER).map_err(OrderError::Input)?;
    let buffer = buffer.as_mut_slice();
    if estimate(&mut Oracle::of(file.as_raw_fd()), Bytes::new(size)) == Some(1.0) {
        // As good in file order, and counting every page would take longer than it can gain.
        copy(file, &Run { start: 0, end: size, cached: true }, buffer, out)?;
    } else {
        let residency =
            fccd::residency(file, &fccd::Options::default()).map_err(OrderError::Input)?;
        // The kernel's read-ahead would run on behind an access unit, into what has been written
        // already and may have left the cache since. Ours stops at its end.
        let _ = fadvise(file, 0, None, Advice::Random);
        for run in runs(&residency, options) {
            copy(file, &run, buffer, out)?;
        }
    }
    out.flush().map_err(OrderError::Output)
}

/// Access units that are copied in one go, because each begins where the one before it ends.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    start: u64,
    end: u64,
    /// All of it is: it needs no reading ahead.
    cached: bool,
}

fn copy(file: &File, run: &Run, buffer: &mut [u8], out: &mut dyn Write) -> Result<(), OrderError> {
    let mut ahead = if run.cached { run.end } else { run.start };
    let mut at = run.start;
    while at < run.end {
        if ahead < run.end && ahead - at < AHEAD {
            ahead = read_ahead(file, ahead, run.end);
        }
        // Up to a multiple of the buffer: a copy that begins inside of a page takes longer.
        let next = (at + 1).next_multiple_of(BUFFER as u64).min(run.end);
        let piece = &mut buffer[..(next - at) as usize];
        read(file, piece, at).map_err(OrderError::Input)?;
        out.write_all(piece).map_err(OrderError::Output)?;
        at = next;
    }
    Ok(())
}

fn read(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "Became shorter meanwhile"),
        _ => error,
    })
}

/// Has the next bytes from `start` on read in the background, not beyond `end`; returns where
/// that stops.
fn read_ahead(file: &File, start: u64, end: u64) -> u64 {
    let length = (end - start).min(AHEAD);
    if let Some(length) = NonZeroU64::new(length) {
        // Refused, the reading waits for each page; the bytes are the same.
        let _ = fadvise(file, start, Some(length), Advice::WillNeed);
    }
    start + length
}

/// The access units in best order, neighbours joined.
fn runs(residency: &Residency, options: &CatOptions) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for Unit { start, end, cached_bytes, .. } in best_first(residency, options) {
        let cached = cached_bytes == end - start;
        match runs.last_mut().filter(|last| last.end == start && last.cached == cached) {
            Some(last) => last.end = end,
            None => runs.push(Run { start, end, cached }),
        }
    }
    runs
}

/// The access units, best first: by quarters of being cached, then in file order, so that the
/// disk sees as few jumps as possible.
fn best_first(residency: &Residency, options: &CatOptions) -> Vec<Unit> {
    let mut units = units(residency, options.access_unit, options.align);
    units.sort_by_key(Unit::rank);
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fccd::{Heisenberg, Region};
    use crate::pagecache::Means;
    use proptest::prelude::*;

    fn half_cached(size: u64, cached_from: u64) -> Residency {
        let regions = vec![
            Region { offset: 0, length: cached_from, cached_bytes: 0 },
            Region {
                offset: cached_from,
                length: size - cached_from,
                cached_bytes: size - cached_from,
            },
        ];
        Residency { size, means: Means::Cachestat, regions, heisenberg: Heisenberg::default() }
    }

    //= gray-box/4.1.2-boundaries
    #[test]
    fn cached_units_first_and_a_torn_record_last() {
        let options = CatOptions { access_unit: 35, align: 10 };
        let units: Vec<_> = best_first(&half_cached(95, 60), &options)
            .iter()
            .map(|unit| (unit.start, unit.end))
            .collect();
        assert_eq!(units, [(60, 90), (0, 30), (30, 60), (90, 95)]);
    }

    #[test]
    fn neighbours_are_one_run() {
        let options = CatOptions { access_unit: 10, align: 1 };
        let run = |start, end, cached| Run { start, end, cached };
        let wanted = [run(60, 95, true), run(0, 60, false)];
        assert_eq!(runs(&half_cached(95, 60), &options), wanted);
    }

    /// An output that cuts the file which is read.
    struct Cut(File);

    impl Write for Cut {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.set_len(1)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_input_or_the_output_is_to_blame() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * BUFFER as u64).unwrap();
        let options = CatOptions::default();
        let mut full = File::create("/dev/full").unwrap();
        assert!(matches!(cat(&file, &options, &mut full), Err(OrderError::Output(_))));
        let mut cut = Cut(file.try_clone().unwrap());
        let error = match cat(&file, &options, &mut cut) {
            Err(OrderError::Input(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(error, "Became shorter meanwhile");
    }

    proptest! {
        //= gray-box/4.1.2-gbp-out
        #[test]
        fn every_byte_once(size in 2u64..5000, cached in 1u64..5000, unit in 1u64..600, align in 1u64..70) {
            let residency = half_cached(size, cached.min(size - 1));
            let mut units = best_first(&residency, &CatOptions { access_unit: unit, align });
            units.sort_unstable_by_key(|unit| unit.start);
            let mut next = 0;
            for Unit { start, end, .. } in units {
                prop_assert_eq!(start, next);
                prop_assert!(start % align == 0 && end > start);
                next = end;
            }
            prop_assert_eq!(next, size);
        }
    }
}
