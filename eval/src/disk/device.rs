//! The loop device: attached with direct I/O, tuned like a disk, found again by its image.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::Serialize;

use crate::tool;

/// A disk's tags: small, so that the I/O scheduler keeps requests to choose from.
const QUEUE_DEPTH: u32 = 4;
/// Largest request, in KiB, as IDE and SCSI disks of the papers' day took.
const MAX_SECTORS_KB: u32 = 512;

/// Attaches `image`, with direct I/O, to a free loop device.
///
/// # Errors
/// No free device, or the kernel does buffered I/O only (which would cache the disk in memory).
pub fn attach(image: &Path) -> anyhow::Result<PathBuf> {
    let image = image.as_os_str();
    let device = tool::run(
        "losetup",
        ["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), image],
    )?;
    let device = PathBuf::from(device);
    if attribute(&device, "loop/dio")? != "1" {
        detach(&device)?;
        bail!("{} does no direct I/O; this kernel is too old", device.display());
    }
    Ok(device)
}

/// Detaches the loop device.
///
/// # Errors
/// As losetup(8).
pub fn detach(device: &Path) -> anyhow::Result<()> {
    tool::run("losetup", ["--detach".as_ref(), device.as_os_str()]).map(drop)
}

/// Returns all loop devices backed by `image`, dead or alive.
#[must_use]
pub fn attached_to(image: &Path) -> Vec<PathBuf> {
    all(|file| Path::new(file) == image)
}

/// Returns all loop devices backed by one of these files.
#[must_use]
pub fn all(wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    devices
        .flatten()
        .map(|entry| PathBuf::from("/dev").join(entry.file_name()))
        .filter(|device| attribute(device, "loop/backing_file").is_ok_and(|file| wanted(&file)))
        .collect()
}

/// Makes the device's queue that of a disk.
///
/// The order matters: the depth can be set under scheduler `none` only, and a new `max_sectors_kb`
/// resets `read_ahead_kb`.
///
/// # Errors
/// The kernel refuses a value, such as a scheduler that it does not have.
pub fn tune(
    device: &Path,
    rotational: bool,
    scheduler: &str,
    read_ahead_kb: u64,
) -> anyhow::Result<()> {
    set(device, "scheduler", "none")?;
    set(device, "nr_requests", &QUEUE_DEPTH.to_string())?;
    set(device, "rotational", if rotational { "1" } else { "0" })?;
    set(device, "max_sectors_kb", &MAX_SECTORS_KB.to_string())?;
    set(device, "read_ahead_kb", &read_ahead_kb.to_string())?;
    set_scheduler(device, scheduler)
}

/// Chooses the I/O scheduler.
///
/// # Errors
/// The kernel has no such scheduler: the message names those that it has.
pub fn set_scheduler(device: &Path, scheduler: &str) -> anyhow::Result<()> {
    let known = schedulers(device)?;
    if !known.iter().any(|name| name == scheduler) {
        bail!("this kernel has no I/O scheduler {scheduler}; it has {}", known.join(", "));
    }
    set(device, "scheduler", scheduler)
}

/// The I/O schedulers that the device can use.
///
/// # Errors
/// The device is gone.
pub fn schedulers(device: &Path) -> anyhow::Result<Vec<String>> {
    let text = attribute(device, "queue/scheduler")?;
    Ok(text.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect())
}

/// The device's number as `major:minor`.
///
/// # Errors
/// The device is gone.
pub fn number(device: &Path) -> anyhow::Result<String> {
    attribute(device, "dev")
}

fn set(device: &Path, name: &str, value: &str) -> anyhow::Result<()> {
    let file = folder(device)?.join("queue").join(name);
    fs::write(&file, value)
        .with_context(|| format!("the kernel refuses {value} for {}", file.display()))
}

/// Reads an attribute of the device below /sys/block.
///
/// # Errors
/// The device or the attribute does not exist.
pub fn attribute(device: &Path, name: &str) -> anyhow::Result<String> {
    let file = folder(device)?.join(name);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()));
    Ok(text?.trim_end().to_owned())
}

fn folder(device: &Path) -> anyhow::Result<PathBuf> {
    let name = device.file_name().ok_or_else(|| anyhow!("{} is no device", device.display()))?;
    Ok(Path::new("/sys/block").join(name))
}

/// What the kernel has counted for a device: Documentation/block/stat.rst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeviceCounters {
    /// Completed reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Milliseconds with a request under way.
    pub busy_ms: u64,
}

impl DeviceCounters {
    /// Reads the counters of `device`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn of(device: &Path) -> anyhow::Result<Self> {
        Self::parse(&attribute(device, "stat")?)
            .ok_or_else(|| anyhow!("{}: unknown form of counters", device.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        const SECTOR: u64 = 512;
        let fields: Vec<u64> =
            text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self {
            reads: *fields.first()?,
            read_bytes: fields.get(2)? * SECTOR,
            writes: *fields.get(4)?,
            write_bytes: fields.get(6)? * SECTOR,
            busy_ms: *fields.get(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_fields() {
        let text = "  10 1 160 7  20 2 320 9 0 55 16 0 0 0 0 0 0";
        let expected = DeviceCounters {
            reads: 10,
            read_bytes: 160 * 512,
            writes: 20,
            write_bytes: 320 * 512,
            busy_ms: 55,
        };
        assert_eq!(DeviceCounters::parse(text), Some(expected));
        assert_eq!(DeviceCounters::parse("1 2 x"), None);
    }
}
