//! The microbenchmarks.

mod disk;
mod figures;
mod host;
mod mounts;
mod overhead;
mod trust;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::disk::{Disk, Memory};
use self::figures::Place;
use self::host::Host;
pub use self::mounts::{Mount, file_system, mounts};
use crate::profile::store::{Figure, Profile, Trust, VERSION, device_name};

/// What to calibrate.
#[derive(Debug)]
pub struct Calibration<'a> {
    /// Folders with the devices and file systems to measure, each once; a file of 64 MiB is written
    /// there for the time of the measurement.
    pub dirs: &'a [&'a Path],
    /// Time for all of it.
    pub at_most: Duration,
    /// The machine is known to be busy; only recorded.
    pub while_busy: bool,
    /// Once this is set the measurement ends, and takes away what it has made.
    pub asked_to_end: &'a AtomicBool,
}

impl Calibration<'_> {
    fn is_over(&self) -> bool {
        self.asked_to_end.load(Ordering::Relaxed)
    }
}

/// A machine is faster in one second than in the next, by a quarter on one that shares its
/// processors and disks with others. Rounds of all measurements over this time see both.
const SPREAD_OVER: Duration = Duration::from_secs(15);
/// Rounds even if they take longer.
const LEAST_ROUNDS: u32 = 3;

/// Measures; `progress` is told of each step before it begins, `skipped` of each folder that
/// cannot be measured. `None` if it was asked to end.
#[must_use]
pub fn calibrate(
    calibration: &Calibration<'_>,
    progress: &mut dyn FnMut(&str),
    skipped: &mut dyn FnMut(&Path, &io::Error),
) -> Option<Profile> {
    let mut folders: Vec<Folder<'_>> = Vec::new();
    for dir in calibration.dirs {
        if calibration.is_over() {
            return None;
        }
        match Folder::new(dir, &folders, calibration, progress) {
            Ok(folder) => folders.extend(folder),
            Err(error) => skipped(dir, &error),
        }
    }
    let mut host = Host::default();
    sample(calibration, (&mut host, &mut folders), progress, skipped);
    if calibration.is_over() {
        return None;
    }
    let mut profile = Profile {
        version: VERSION,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        while_busy: calibration.while_busy,
        figures: host.figures(),
        trusts: Vec::new(),
    };
    for folder in folders {
        profile.figures.extend(folder.store.figures(&folder.place));
        profile.trusts.push(folder.trust);
    }
    Some(profile)
}

/// Rounds of all measurements, unless it is asked to end.
fn sample(
    calibration: &Calibration<'_>,
    (host, folders): (&mut Host, &mut Vec<Folder<'_>>),
    progress: &mut dyn FnMut(&str),
    skipped: &mut dyn FnMut(&Path, &io::Error),
) {
    let each = calibration.at_most / (folders.len() as u32 + 1) / LEAST_ROUNDS;
    let clock = Instant::now();
    for round in 1.. {
        progress(&format!("timer, memory and {} devices, round {round}", folders.len()));
        host.sample();
        folders.retain_mut(|folder| {
            let sampled = if calibration.is_over() { Ok(()) } else { folder.sample(each) };
            sampled.inspect_err(|error| skipped(folder.dir, error)).is_ok()
        });
        let is_enough = round >= LEAST_ROUNDS && clock.elapsed() >= SPREAD_OVER;
        if is_enough || calibration.is_over() {
            break;
        }
    }
}

/// A folder under measurement.
struct Folder<'a> {
    dir: &'a Path,
    dev: u64,
    place: Place,
    trust: Trust,
    store: Store,
}

enum Store {
    Disk(Disk),
    /// What never leaves the cache has no misses and no disk.
    Memory(Memory),
}

impl<'a> Folder<'a> {
    /// `None` if its device is among `known`.
    fn new(
        dir: &'a Path,
        known: &[Folder<'_>],
        calibration: &Calibration<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> io::Result<Option<Self>> {
        let dev = rustix::fs::stat(dir)?.st_dev;
        if known.iter().any(|folder| folder.dev == dev) {
            return Ok(None);
        }
        let kind = Mount::of(dir).map_or_else(|| file_system(dev), |mount| mount.kind);
        let place = Place { device: device_name(dev), file_system: kind };
        progress(&format!("{} on {} at {}", place.file_system, place.device, dir.display()));
        let trust = trust::measure(dir, &place, calibration.asked_to_end)?;
        let store = match trust.reads_frac {
            Some(_) => Store::Disk(Disk::new(dir)?),
            None => Store::Memory(Memory::new(dir)?),
        };
        Ok(Some(Self { dir, dev, place, trust, store }))
    }

    fn sample(&mut self, at_most: Duration) -> io::Result<()> {
        match &mut self.store {
            Store::Disk(disk) => disk.sample(at_most),
            Store::Memory(memory) => memory.sample(),
        }
    }
}

impl Store {
    fn figures(self, place: &Place) -> Vec<Figure> {
        match self {
            Self::Disk(disk) => disk.figures(place),
            Self::Memory(memory) => memory.figures(place),
        }
    }
}
