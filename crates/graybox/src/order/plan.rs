//! The parts of a set of files in the order in which reading them costs the least disk, as a list
//! for a program that reads them itself (section 4.1.2).

use std::collections::BTreeMap;
use std::path::Path;

use super::names::Names;
use super::units::{Unit, units};
use crate::fccd::{self, Residency, residency};
use crate::fldc::{Place, place};
use crate::input::{Facts, InputError, open};

/// What a program wants of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanOptions {
    /// Bytes to read in one go; `None` is what the file's disk needs to make up for a seek.
    pub access_unit: Option<u64>,
    /// Length of a record in bytes: no part ends inside one, but for what is left at the end of a
    /// file. 0 counts as 1.
    pub align: u64,
}

/// A part of one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index of its file among the names.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes; never 0.
    pub length: u64,
    /// Bytes of it that are cached, at most `length`.
    pub cached_bytes: u64,
}

/// The parts of all files.
#[derive(Debug, Default)]
pub struct Plan {
    /// Each byte of each file once, best first.
    pub pieces: Vec<Piece>,
    /// How many files could not be looked at.
    pub failed: usize,
}

//= gray-box/4.1.2-list
/// Plans the reading of all `names`: parts in the cache first, then the others as the files lie on
/// the disk, and last what is left of records. `unit_of` gives the access unit of a disk (its
/// `st_dev`); `complain` is told of each file that cannot be looked at.
pub fn plan(
    names: &Names,
    options: &PlanOptions,
    unit_of: &dyn Fn(u64) -> u64,
    complain: &mut dyn FnMut(&Path, &InputError),
) -> Plan {
    let mut found = Vec::new();
    let mut failed = 0;
    for index in 0..u32::try_from(names.len()).unwrap_or(u32::MAX) {
        match look(names.get(index as usize), options, unit_of) {
            Ok((place, units)) => found.extend(units.into_iter().map(|unit| (unit, place, index))),
            Err(error) => {
                complain(names.get(index as usize), &error);
                failed += 1;
            }
        }
    }
    Plan { pieces: best_first(found), failed }
}

//= gray-box/4.1.2-own-pieces
/// Orders parts that the program has cut itself: `wanted` holds the index of a file among `names`, first byte and
/// length of each. What lies beyond the end of its file is cut off, and left out if nothing remains.
pub fn order_pieces(
    names: &Names,
    wanted: &[(u32, u64, u64)],
    complain: &mut dyn FnMut(&Path, &InputError),
) -> Plan {
    let mut by_file: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for &(file, offset, length) in wanted {
        if (file as usize) < names.len() {
            by_file.entry(file).or_default().push((offset, length));
        }
    }
    let (mut found, mut failed) = (Vec::new(), 0);
    for (file, wanted) in by_file {
        let path = names.get(file as usize);
        match look_at(path) {
            Ok((place, _, residency)) => {
                let cut = wanted.iter().filter_map(|&(start, length)| {
                    let end = start.saturating_add(length).min(residency.size);
                    (start < end).then(|| {
                        let cached_bytes = residency.cached_within(start, end - start);
                        Unit { start, end, cached_bytes, torn: false }
                    })
                });
                found.extend(cut.map(|unit| (unit, place, file)));
            }
            Err(error) => {
                complain(path, &error);
                failed += 1;
            }
        }
    }
    Plan { pieces: best_first(found), failed }
}

/// Parts in the cache first, then the others as the files lie on the disk.
fn best_first(mut found: Vec<(Unit, Place, u32)>) -> Vec<Piece> {
    found.sort_by_key(|(unit, place, index)| (unit.rank(), *place, *index, unit.start));
    let pieces = found.into_iter().map(|(unit, _, file)| Piece {
        file,
        offset: unit.start,
        length: unit.end - unit.start,
        cached_bytes: unit.cached_bytes,
    });
    pieces.collect()
}

fn look(
    path: &Path,
    options: &PlanOptions,
    unit_of: &dyn Fn(u64) -> u64,
) -> Result<(Place, Vec<Unit>), InputError> {
    let (place, facts, found) = look_at(path)?;
    Ok((place, units(&found, unit_for(options, &facts, unit_of), options.align)))
}

fn look_at(path: &Path) -> Result<(Place, Facts, Residency), InputError> {
    let (file, facts) = open(path)?;
    let place = place(&file, &facts);
    Ok((place, facts, residency(&file, &fccd::Options::default())?))
}

//= gray-box/5-missing
fn unit_for(options: &PlanOptions, facts: &Facts, unit_of: &dyn Fn(u64) -> u64) -> u64 {
    options.access_unit.filter(|unit| *unit > 0).unwrap_or_else(|| unit_of(facts.dev))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;

    use rustix::fs::{Advice, fadvise};

    use super::*;

    const UNIT: u64 = 256 << 10;

    fn planned(paths: &[std::path::PathBuf], options: &PlanOptions) -> Plan {
        let mut names = Names::default();
        paths.iter().for_each(|path| names.push(path.as_os_str()));
        plan(&names, options, &|_| UNIT, &mut |_, _| ())
    }

    /// Files of these sizes on a disk, all cached.
    fn files(folder: &Path, sizes: &[u64]) -> Vec<std::path::PathBuf> {
        let write = |(number, size): (usize, &u64)| {
            let path = folder.join(number.to_string());
            fs::write(&path, vec![7u8; *size as usize]).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            path
        };
        sizes.iter().enumerate().map(write).collect()
    }

    //= gray-box/4.1.2-list
    #[test]
    fn cached_units_of_all_files_come_first() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let paths = files(folder.path(), &[8 * UNIT, 4 * UNIT, 8 * UNIT]);
        // The cache may hold more than a unit in one piece, which goes only as a whole.
        for (path, again) in [(&paths[0], 4 * UNIT), (&paths[2], 0)] {
            let file = File::open(path).unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            fadvise(&file, 0, None, Advice::Random).unwrap();
            file.read_exact_at(&mut vec![0; again as usize], 0).unwrap();
        }
        let options = PlanOptions { access_unit: None, align: 1 };
        let mut with_missing = paths;
        with_missing.push("/nowhere/at/all".into());
        let plan = planned(&with_missing, &options);
        assert_eq!((plan.pieces.len(), plan.failed), (20, 1));
        let cached: Vec<bool> =
            plan.pieces.iter().map(|piece| piece.cached_bytes == piece.length).collect();
        assert_eq!(cached, (0..20).map(|at| at < 8).collect::<Vec<_>>(), "{plan:?}");
        // Of one file in its order, cached or not.
        for file in 0..3 {
            for is_cached in [true, false] {
                let own = plan.pieces.iter().zip(&cached);
                let own = own.filter(|(piece, c)| piece.file == file && **c == is_cached);
                assert!(own.map(|(piece, _)| piece.offset).is_sorted(), "{plan:?}");
            }
        }
    }

    //= gray-box/4.1.2-own-pieces
    #[test]
    fn parts_that_the_program_has_cut_are_ordered() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let paths = files(folder.path(), &[4 * UNIT, 4 * UNIT]);
        let cold = File::open(&paths[0]).unwrap();
        fadvise(&cold, 0, None, Advice::DontNeed).unwrap();
        let mut names = Names::default();
        paths.iter().for_each(|path| names.push(path.as_os_str()));
        names.push("/nowhere/at/all".as_ref());
        let wanted = [
            (0, 0, 100),
            (2, 0, 100),
            (1, UNIT + 7, 50),
            (1, 4 * UNIT - 10, 100),
            (1, 4 * UNIT, 100),
            (0, 2 * UNIT, UNIT),
            (9, 0, 1),
            (1, 3, 0),
            (1, u64::MAX, u64::MAX),
        ];
        let mut told = 0;
        let plan = order_pieces(&names, &wanted, &mut |_, _| told += 1);
        let parts: Vec<_> =
            plan.pieces.iter().map(|part| (part.file, part.offset, part.length)).collect();
        let cached_first =
            [(1, UNIT + 7, 50), (1, 4 * UNIT - 10, 10), (0, 0, 100), (0, 2 * UNIT, UNIT)];
        assert_eq!(parts, cached_first);
        assert_eq!((plan.failed, told), (1, 1));
    }

    //= gray-box/4.1.2-boundaries
    #[test]
    fn units_respect_records() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let paths = files(folder.path(), &[1_000_050, 100, 0, 7]);
        let plan = planned(&paths, &PlanOptions { access_unit: Some(UNIT), align: 100 });
        let whole = plan.pieces.iter().filter(|piece| piece.length.is_multiple_of(100));
        assert_eq!(whole.clone().map(|piece| piece.length).sum::<u64>(), 1_000_100);
        assert!(whole.clone().all(|piece| piece.offset % 100 == 0 && piece.length <= UNIT));
        let torn = &plan.pieces[whole.count()..];
        let torn: Vec<_> = torn.iter().map(|piece| (piece.file, piece.length)).collect();
        assert_eq!(torn.len(), 2, "what is left of records comes last: {plan:?}");
        assert!(torn.contains(&(0, 50)) && torn.contains(&(3, 7)), "{plan:?}");
    }
}
