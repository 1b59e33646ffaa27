//! The microbenchmarks.

mod disk;
mod host;
mod trust;

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use discnice_graybox::toolbox::{Stats, discard_outliers, median_of};

use crate::store::{Figure, FigureName, Profile, Unit, VERSION, device_name};

/// What to calibrate.
#[derive(Debug)]
pub struct Calibration<'a> {
    /// Folders whose devices and file systems are measured, each once; a file of 64 MiB is
    /// written there for the time of the measurement.
    pub dirs: &'a [&'a Path],
    /// Time for all of it.
    pub at_most: Duration,
    /// The machine is known to be busy; only recorded.
    pub while_busy: bool,
}

/// Measures; `progress` is told of each step before it begins, `skipped` of each folder that
/// cannot be measured.
#[must_use]
pub fn calibrate(
    calibration: &Calibration<'_>,
    progress: &mut dyn FnMut(&str),
    skipped: &mut dyn FnMut(&Path, &io::Error),
) -> Profile {
    let mut profile = Profile {
        version: VERSION,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        while_busy: calibration.while_busy,
        figures: Vec::new(),
        trusts: Vec::new(),
    };
    progress("timer and memory");
    profile.figures.extend(host::measure());
    let each = calibration.at_most / u32::try_from(calibration.dirs.len() + 1).unwrap_or(1);
    let mut devices = Vec::new();
    for dir in calibration.dirs {
        match measure_dir(dir, each, &mut devices, progress, &mut profile) {
            Ok(()) => {}
            Err(error) => skipped(dir, &error),
        }
    }
    profile
}

fn measure_dir(
    dir: &Path,
    at_most: Duration,
    devices: &mut Vec<u64>,
    progress: &mut dyn FnMut(&str),
    profile: &mut Profile,
) -> io::Result<()> {
    let dev = rustix::fs::stat(dir)?.st_dev;
    if devices.contains(&dev) {
        return Ok(());
    }
    devices.push(dev);
    let place = Place { device: device_name(dev), file_system: file_system(dev) };
    progress(&format!("{} on {} at {}", place.file_system, place.device, dir.display()));
    let trust = trust::measure(dir, &place)?;
    profile.figures.extend(match trust.reads_frac {
        Some(_) => disk::measure(dir, &place, at_most)?,
        // What never leaves the cache has no misses and no disk.
        None => disk::measure_hits(dir, &place)?,
    });
    profile.trusts.push(trust);
    Ok(())
}

/// Where a figure belongs.
struct Place {
    device: String,
    file_system: String,
}

/// Type of the file system with this `st_dev`, as in /proc/self/mountinfo.
#[must_use]
pub fn file_system(dev: u64) -> String {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let wanted = device_name(dev);
    let found = text.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        (place.split(' ').nth(2)? == wanted).then(|| kind.split(' ').next())?
    });
    // Subvolumes have devices of their own that no mount shows.
    found.unwrap_or("unknown").to_owned()
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The median of the repetitions and their spread without outliers; `None` without repetitions.
fn figure(
    name: FigureName,
    unit: Unit,
    mut samples: Vec<f64>,
    place: Option<&Place>,
) -> Option<Figure> {
    let count = samples.len() as u64;
    discard_outliers(&mut samples, 3.0);
    let mut stats = Stats::default();
    stats.extend(samples.iter().copied());
    Some(Figure {
        name,
        value: median_of(&samples)?,
        unit,
        spread: stats.deviation(),
        samples: count,
        device: place.map(|place| place.device.clone()),
        file_system: place.map(|place| place.file_system.clone()),
        date: now(),
    })
}
