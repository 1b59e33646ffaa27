//! The microbenchmarks.

mod disk;
mod host;
mod overhead;
mod trust;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::toolbox::{Stats, discard_outliers};

use self::disk::{Disk, Memory};
use self::host::Host;
use crate::profile::store::{Figure, FigureName, Profile, Trust, Unit, VERSION, device_name};

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
}

/// A machine is faster in one second than in the next, by a quarter on one that shares its
/// processors and disks with others. Rounds of all measurements over this time see both.
const SPREAD_OVER: Duration = Duration::from_secs(15);
/// Rounds even if they take longer.
const LEAST_ROUNDS: u32 = 3;

/// Measures; `progress` is told of each step before it begins, `skipped` of each folder that
/// cannot be measured.
#[must_use]
pub fn calibrate(
    calibration: &Calibration<'_>,
    progress: &mut dyn FnMut(&str),
    skipped: &mut dyn FnMut(&Path, &io::Error),
) -> Profile {
    let mut folders: Vec<Folder<'_>> = Vec::new();
    for dir in calibration.dirs {
        match Folder::new(dir, &folders, progress) {
            Ok(folder) => folders.extend(folder),
            Err(error) => skipped(dir, &error),
        }
    }
    let mut host = Host::default();
    let each = calibration.at_most / (folders.len() as u32 + 1) / LEAST_ROUNDS;
    let clock = Instant::now();
    for round in 1.. {
        progress(&format!("timer, memory and {} devices, round {round}", folders.len()));
        host.sample();
        folders.retain_mut(|folder| match folder.sample(each) {
            Ok(()) => true,
            Err(error) => {
                skipped(folder.dir, &error);
                false
            }
        });
        if round >= LEAST_ROUNDS && clock.elapsed() >= SPREAD_OVER {
            break;
        }
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
    profile
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
        progress: &mut dyn FnMut(&str),
    ) -> io::Result<Option<Self>> {
        let dev = rustix::fs::stat(dir)?.st_dev;
        if known.iter().any(|folder| folder.dev == dev) {
            return Ok(None);
        }
        let kind = Mount::of(dir).map_or_else(|| file_system(dev), |mount| mount.kind);
        let place = Place { device: device_name(dev), file_system: kind };
        progress(&format!("{} on {} at {}", place.file_system, place.device, dir.display()));
        let trust = trust::measure(dir, &place)?;
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

/// Place of a figure in the profile.
struct Place {
    device: String,
    file_system: String,
}

/// Type of the file system with this `st_dev`, as in /proc/self/mountinfo.
#[must_use]
pub fn file_system(dev: u64) -> String {
    let wanted = device_name(dev);
    let found = mounts().into_iter().find(|mount| mount.device == wanted);
    // Subvolumes have devices of their own that no mount shows.
    found.map_or_else(|| "unknown".to_owned(), |mount| mount.kind)
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `MAJOR:MINOR`; of a btrfs not that of its files.
    device: String,
    /// Mount point.
    pub point: PathBuf,
    /// Its type.
    pub kind: String,
    /// What it was mounted from.
    source: String,
    /// Options of the file system.
    options: String,
}

/// All that are mounted, the first below the others; none where that is not told. proc_pid_mountinfo(5)
#[must_use]
pub fn mounts() -> Vec<Mount> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(Mount::parse).collect()
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (place, rest) = line.split_once(" - ")?;
        let (mut place, mut rest) = (place.split(' '), rest.split(' '));
        Some(Self {
            device: place.nth(2)?.to_owned(),
            // Blanks in it are written in octal; such a place is then not found.
            point: place.nth(1)?.into(),
            kind: rest.next()?.to_owned(),
            source: rest.next()?.to_owned(),
            options: rest.next().unwrap_or_default().to_owned(),
        })
    }

    /// Its device number, as stat(2) tells it of its files; of a btrfs it is another one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let (major, minor) = self.device.split_once(':')?;
        Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
    }

    /// What lies below it: a disk, or the folder that it shows again (bindfs), or writes to or else reads from
    /// (overlayfs).
    #[must_use]
    pub fn below(&self) -> &Path {
        let named = |name| self.options.split(',').find_map(|option| option.strip_prefix(name));
        let lower = || named("lowerdir=").or_else(|| named("lowerdir+="))?.split(':').next();
        Path::new(named("upperdir=").or_else(lower).unwrap_or(&self.source))
    }

    /// The device number of the files in its uppermost folder, which on btrfs no list of mounts tells.
    ///
    /// # Errors
    /// Those of stat(2).
    pub fn device_of_files(&self) -> io::Result<u64> {
        Ok(rustix::fs::stat(&self.point)?.st_dev)
    }

    /// The one in which a folder lies.
    fn of(dir: &Path) -> Option<Self> {
        let dir = dir.canonicalize().ok()?;
        let above = mounts().into_iter().filter(|mount| dir.starts_with(&mount.point));
        // Of two at one place the later one is on top.
        above.max_by_key(|mount| mount.point.as_os_str().len())
    }
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The better quartile of the repetitions, as what disturbs only makes slower, and their spread
/// without outliers; `None` without repetitions.
fn figure(
    name: FigureName,
    unit: Unit,
    mut samples: Vec<f64>,
    place: Option<&Place>,
) -> Option<Figure> {
    let count = samples.len();
    samples.sort_by(f64::total_cmp);
    let value = *samples.get(match unit {
        Unit::Nanoseconds => count / 4,
        Unit::BytesPerSecond => count * 3 / 4,
    })?;
    discard_outliers(&mut samples, 3.0);
    let mut stats = Stats::default();
    stats.extend(samples);
    Some(Figure {
        name,
        value,
        unit,
        spread: stats.deviation(),
        samples: count as u64,
        device: place.map(|place| place.device.clone()),
        file_system: place.map(|place| place.file_system.clone()),
        date: now(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mounts() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.device.as_str(), mount.point.as_path()), ("98:0", Path::new("/mnt2")));
        assert_eq!((mount.kind.as_str(), mount.source.as_str()), ("ext3", "/dev/root"));
        assert_eq!(mount.below(), Path::new("/dev/root"));
        let line = "9 1 0:44 / /m rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w";
        assert_eq!(Mount::parse(line).unwrap().below(), Path::new("/u"));
        let line = "9 1 0:44 / /m ro - overlay overlay ro,lowerdir=/l:/k";
        assert_eq!(Mount::parse(line).unwrap().below(), Path::new("/l"));
        assert_eq!(Mount::parse("36 35 98:0"), None);
        assert!(Mount::of(Path::new("/proc")).is_some_and(|mount| mount.kind == "proc"));
    }

    #[test]
    fn what_disturbs_a_part_of_the_time_does_not_count() {
        let figure = |samples: Vec<f64>, unit| {
            figure(FigureName::Seek, unit, samples, None).map(|figure| figure.value)
        };
        let times = vec![900.0, 10.0, 950.0, 11.0, 12.0, 900.0, 910.0, 10.0];
        assert_eq!(figure(times, Unit::Nanoseconds), Some(11.0));
        let rates = vec![100.0, 20.0, 102.0, 30.0];
        assert_eq!(figure(rates, Unit::BytesPerSecond), Some(102.0));
        assert_eq!(figure(Vec::new(), Unit::Nanoseconds), None);
    }
}
