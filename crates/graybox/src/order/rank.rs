//! Ranks files by what the detectors say.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use discnice_units::Bytes;

use crate::pagecache::{Oracle, Probe};

use super::names::Names;
use crate::fccd::{PREDICTION_UNIT, Verdicts, estimate, sample};
use crate::fldc::{Place, place};
use crate::input::{Facts, InputError, open};
use crate::toolbox::split;

/// What the order is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// Most cached first (FCCD).
    Cached,
    /// As they lie on the disk (FLDC).
    Layout,
    /// The cached ones, then the others, each as they lie on the disk.
    #[default]
    Compose,
}

/// Two clusters of cached fractions must have means this far apart to be two.
const CLEARLY_APART: f64 = 0.25;

/// The order found.
#[derive(Debug, Default)]
pub struct Ranking {
    /// Indices into the names, best first; names that could not be looked at are left out.
    pub order: Vec<u32>,
    /// How many could not be looked at.
    pub failed: usize,
}

/// What is known of one file.
struct Seen {
    index: u32,
    /// Cached part of the file, at most 1.
    cached_frac: f32,
    /// Mean time of its probes in nanoseconds; 0 without probes.
    probe_nanos: f32,
    place: Place,
}

//= gray-box/4.1.3-feedback
/// Ranks the files; `complain` is told of each that cannot be looked at. A name that comes twice
/// is ranked twice. At most `u32::MAX` names.
pub fn rank(names: &Names, by: By, complain: &mut dyn FnMut(&Path, &InputError)) -> Ranking {
    let mut seen = Vec::with_capacity(names.len());
    let mut probes = Vec::new();
    for index in 0..u32::try_from(names.len()).unwrap_or(u32::MAX) {
        let path = names.get(index as usize);
        match look(path, index, by, &mut probes) {
            Ok(file) => seen.push(file),
            Err(error) => complain(path, &error),
        }
    }
    judge(&mut seen, &probes);
    sort(&mut seen, by);
    let failed = names.len() - seen.len();
    Ranking { order: seen.into_iter().map(|file| file.index).collect(), failed }
}

/// A probe and the index of its file.
type FileProbe = (u32, Probe);

//= gray-box/4.2.2-stat
fn look(path: &Path, index: u32, by: By, probes: &mut Vec<FileProbe>) -> Result<Seen, InputError> {
    let (file, facts) = open(path)?;
    let place = match by {
        By::Cached => Place { dev: facts.dev, physical: None, ino: facts.ino },
        By::Layout | By::Compose => place(&file, &facts),
    };
    let cached_frac = match by {
        By::Layout => 0.0,
        By::Cached | By::Compose => cached_frac(&file, &facts, index, probes)?,
    };
    Ok(Seen { index, cached_frac, probe_nanos: 0.0, place })
}

//= gray-box/4.1.4-small-files
/// The cached part of a file; 0 for now, and probes to judge later, without an exact means.
fn cached_frac(
    file: &File,
    facts: &Facts,
    index: u32,
    probes: &mut Vec<FileProbe>,
) -> Result<f32, InputError> {
    let fd = file.as_raw_fd();
    if facts.size == 0 {
        return Ok(1.0);
    }
    let size = Bytes::new(facts.size);
    if let Some(cached_frac) = estimate(&mut Oracle::of(fd), size) {
        return Ok(cached_frac as f32);
    }
    let samples = sample(fd, size, PREDICTION_UNIT)?;
    probes.extend(samples.into_iter().map(|sample| (index, sample.probe)));
    Ok(0.0)
}

/// Judges all probes together, as only among many is a fast one known from a slow one. Both lists
/// are in the order of the names.
fn judge(seen: &mut [Seen], probes: &[FileProbe]) {
    let verdicts = Verdicts::of(probes.iter().map(|(_, probe)| probe));
    for own in probes.chunk_by(|one, next| one.0 == next.0) {
        let Ok(at) = seen.binary_search_by_key(&own[0].0, |file| file.index) else { continue };
        let count = own.len() as f32;
        let hits = own.iter().filter(|(_, probe)| verdicts.is_hit(probe)).count();
        let nanos: u64 = own.iter().map(|(_, probe)| probe.nanos).sum();
        seen[at].cached_frac = hits as f32 / count;
        // How long hits took says nothing but what else the machine did: such files keep their order.
        seen[at].probe_nanos = if hits == own.len() { 0.0 } else { nanos as f32 / count };
    }
}

//= gray-box/4.2.4-compose
fn sort(seen: &mut [Seen], by: By) {
    match by {
        By::Layout => seen.sort_unstable_by_key(|file| (file.place, file.index)),
        By::Cached => seen.sort_unstable_by(|one, other| {
            other
                .cached_frac
                .total_cmp(&one.cached_frac)
                .then(one.probe_nanos.total_cmp(&other.probe_nanos))
                .then(one.index.cmp(&other.index))
        }),
        By::Compose => {
            let fractions: Vec<f64> = seen.iter().map(|file| f64::from(file.cached_frac)).collect();
            let cut = split(&fractions)
                .filter(|split| split.high_mean - split.low_mean >= CLEARLY_APART)
                .map_or(-1.0, |split| split.cut as f32);
            seen.sort_unstable_by_key(|file| (file.cached_frac <= cut, file.place, file.index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(index: u32, cached_frac: f32, physical: u64) -> Seen {
        let place = Place { dev: 1, physical: Some(physical), ino: 9 };
        Seen { index, cached_frac, probe_nanos: 0.0, place }
    }

    fn sorted(by: By) -> Vec<u32> {
        let mut seen = [
            file(0, 0.0, 10),
            file(1, 1.0, 30),
            file(2, 0.05, 5),
            file(3, 0.9, 20),
            file(4, 1.0, 7),
        ];
        sort(&mut seen, by);
        seen.iter().map(|file| file.index).collect()
    }

    //= gray-box/4.1.3-feedback
    //= gray-box/4.2.2-stat
    #[test]
    fn each_order() {
        assert_eq!(sorted(By::Layout), [2, 4, 0, 3, 1]);
        assert_eq!(sorted(By::Cached), [1, 4, 3, 2, 0]);
        assert_eq!(sorted(By::Compose), [4, 3, 1, 2, 0]);
    }

    #[test]
    fn files_that_are_all_cached_keep_their_order() {
        let hit = |nanos| Probe { nanos, again_nanos: 400, disk_bytes: 0, waited: false };
        let mut seen = [file(0, 0.0, 3), file(1, 0.0, 2), file(2, 0.0, 1)];
        judge(&mut seen, &[(0, hit(900)), (1, hit(450)), (2, hit(700))]);
        sort(&mut seen, By::Cached);
        assert_eq!(seen.map(|file| (file.index, file.cached_frac)), [(0, 1.0), (1, 1.0), (2, 1.0)]);
    }

    #[test]
    fn of_what_is_not_cached_the_nearest_comes_first() {
        let miss = |nanos| Probe { nanos, again_nanos: 400, disk_bytes: 4096, waited: true };
        let mut seen = [file(0, 0.0, 3), file(1, 0.0, 2)];
        judge(&mut seen, &[(0, miss(9_000_000)), (1, miss(80_000))]);
        sort(&mut seen, By::Cached);
        assert_eq!(seen.map(|file| file.index), [1, 0]);
    }

    //= gray-box/4.2.4-compose
    #[test]
    fn one_cluster_is_in_layout_order() {
        let mut seen = [file(0, 0.1, 3), file(1, 0.0, 2), file(2, 0.05, 1)];
        sort(&mut seen, By::Compose);
        assert_eq!(seen.map(|file| file.index), [2, 1, 0]);
    }
}
