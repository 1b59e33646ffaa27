//! Which estimator a class follows, as options.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use discnice_estimator::blocks::PAGE;
use discnice_estimator::file_systems::OTHERS;
use discnice_estimator::fuse_reads::InodeTable;
use discnice_estimator::{Estimation, Estimator, Modules, Overhead, Verdict};
use discnice_graybox::profile::{Mount, Profile, Trust};

use crate::classes::MappedClass;

/// Assumed read-ahead window of a disk that does not tell its own, in pages: the kernel's default
/// (include/linux/pagemap.h, `VM_READAHEAD_PAGES`).
const WINDOW: u64 = 32;

/// Where charges come from.
#[derive(Debug, Clone, Default, Args)]
pub struct EstimatorArgs {
    /// How I/O is measured: kernel accounting (account, the default), prediction (predict), or
    /// accounting with prediction as a fallback, as on FUSE and network file systems (auto)
    #[arg(long, value_name = "auto|predict|account", value_parser = estimator,
          help_heading = "Expert", hide_short_help = true)]
    estimator: Option<Estimator>,
    /// Parts of the prediction to use, comma-separated: cache, read, write; or none (DiscNice, table 5)
    #[arg(long, value_name = "PARTS", value_parser = modules, hide = true)]
    estimator_modules: Option<Modules>,
}

fn estimator(text: &str) -> Result<Estimator, &'static str> {
    let found = Estimator::ALL.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, estimator)| estimator).ok_or("give auto, predict or account")
}

fn modules(text: &str) -> Result<Modules, &'static str> {
    if text == "none" {
        return Ok(Modules::ALL_OFF);
    }
    text.split(',').try_fold(Modules::ALL_OFF, |parts, name| match name {
        "cache" => Ok(Modules { cache_detector: true, ..parts }),
        "read" => Ok(Modules { read_size: true, ..parts }),
        "write" => Ok(Modules { write_size: true, ..parts }),
        _ => Err("give parts of cache,read,write, or none"),
    })
}

impl EstimatorArgs {
    /// Makes the class follow what was given, and leaves the rest as it is. What files cost that it makes it is told
    /// in any case.
    pub fn apply(&self, found: &MappedClass) {
        let now = found.class.estimation();
        tell_calibrated(now);
        if self.estimator.is_none() && self.estimator_modules.is_none() {
            return;
        }
        let modules = self.estimator_modules.unwrap_or_else(|| now.modules());
        let estimator = self.estimator.unwrap_or_else(|| now.estimator());
        if estimator != Estimator::Account {
            tell_windows(now);
            tell_served(now);
        }
        found.class.choose(estimator, modules);
    }
}

/// Tells the class what making a file costs where, and whether the kernel keeps an account there, as far as the
/// host profile knows: of the file systems that were calibrated, and of others of their types.
fn tell_calibrated(estimation: &Estimation) {
    let Ok(profile) = Profile::load() else { return };
    for mount in discnice_graybox::profile::mounts() {
        let same_type = |trust: &&Trust| trust.file_system == mount.kind;
        if !profile.trusts.iter().any(|trust| same_type(&trust)) {
            // Not asked about: it may be a network's that does not answer.
            continue;
        }
        let Ok(device) = std::fs::metadata(&mount.point).map(|point| point.dev()) else { continue };
        let found = profile.trust(device).or_else(|| profile.trusts.iter().find(same_type));
        let slot = estimation.file_systems().slot(device);
        if let (Some(trust), Some(fs)) = (found, estimation.file_system(slot)) {
            let bytes = |told: Option<u64>| u32::try_from(told.unwrap_or(0)).unwrap_or(u32::MAX);
            let tiny = trust.tiny_file_overhead_bytes;
            fs.set_overhead(Overhead {
                beside_data: bytes(trust.file_overhead_bytes),
                beside_account: bytes(trust.file_uncharged_bytes),
                once: bytes(trust.transaction_bytes),
                tiny_beside_data: tiny.and_then(|bytes| i32::try_from(bytes).ok()),
            });
            fs.calibrate(trust.reads_frac.map_or(Verdict::Undecided, Verdict::of_reads));
        }
    }
}

/// Tells the class how far a page fault reads where the device number of files does not say it.
fn tell_windows(estimation: &Estimation) {
    for mount in discnice_graybox::profile::mounts() {
        if hides_devices(&mount)
            && let (Some(window), Ok(device)) = (window_of(&mount, LAYERS), mount.device_of_files())
            && let Some(fs) = estimation.file_system(estimation.file_systems().slot(device))
        {
            fs.set_read_around(u32::try_from(window / PAGE).unwrap_or(u32::MAX));
        }
    }
}

/// Whether its files bear a device number that is of no disk, but made up for the file system.
fn hides_devices(mount: &Mount) -> bool {
    matches!(mount.kind.as_str(), "btrfs" | "overlay")
}

/// File systems that are looked for below each other. A path may lead back to where it came from, if something is
/// mounted over it.
const LAYERS: usize = 3;

/// The read-ahead window of what is mounted, in bytes, as far as that is told.
fn window_of(mount: &Mount, layers: usize) -> Option<u64> {
    match mount.kind.as_str() {
        "btrfs" => btrfs_window(mount.below()),
        _ => window_at(mount.below(), layers.checked_sub(1)?),
    }
}

/// Returns the read-ahead window of the disk with the files in a folder.
fn window_at(folder: &Path, layers: usize) -> Option<u64> {
    let device = std::fs::metadata(folder).ok()?.dev();
    discnice_sys::mapped::read_around(device).or_else(|| {
        let here = |mount: &&Mount| {
            hides_devices(mount) && mount.device_of_files().is_ok_and(|number| number == device)
        };
        window_of(discnice_graybox::profile::mounts().iter().find(here)?, layers)
    })
}

/// A btrfs has a window of its own, longer than that of its disks: Documentation/ABI/testing/sysfs-fs-btrfs
fn btrfs_window(disk: &Path) -> Option<u64> {
    let name = disk.file_name()?;
    let is_its = |folder: &PathBuf| folder.join("devices").join(name).exists();
    let mut all = std::fs::read_dir("/sys/fs/btrfs").ok()?.flatten().map(|entry| entry.path());
    let kibibytes = std::fs::read_to_string(all.find(is_its)?.join("bdi/read_ahead_kb")).ok()?;
    Some(kibibytes.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// Tells the class which file systems a daemon serves, and how far the kernel reads ahead for it.
fn tell_served(estimation: &Estimation) {
    for mount in discnice_graybox::profile::mounts() {
        // No daemon is asked that may not answer: the number is in the list of mounts.
        if !(mount.kind == "fuse" || mount.kind.starts_with("fuse.")) {
            continue;
        }
        let below = Some(mount.below()).filter(|path| path.is_absolute());
        let device = below.and_then(|path| std::fs::metadata(path).ok()).map(|status| status.dev());
        let window =
            below.and_then(|path| window_at(path, LAYERS)).map_or(WINDOW, |bytes| bytes / PAGE);
        let table = device.map(discnice_graybox::profile::file_system);
        let Some(served) = mount.number() else { continue };
        let slot = estimation.file_systems().slot(served);
        if let Some(fs) = estimation.file_system(slot) {
            let table = table.map_or(InodeTable::default(), |name| InodeTable::of(&name));
            fs.serve(u32::try_from(window).unwrap_or(u32::MAX), table);
            if table != InodeTable::default()
                && let Some(others) = estimation.file_system(OTHERS)
            {
                others.set_inode_table(table);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= discnice/4.1-submodules
    //= discnice/6.2-configurations
    #[test]
    fn parts_by_name() {
        assert_eq!(modules("cache,read,write"), Ok(Modules::ALL_ON));
        assert_eq!(modules("none"), Ok(Modules::ALL_OFF));
        assert_eq!(modules("read"), Ok(Modules { read_size: true, ..Modules::ALL_OFF }));
        assert!(modules("cache,").is_err());
    }
}
