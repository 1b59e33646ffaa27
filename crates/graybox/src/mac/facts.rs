//! What today's Linux tells about memory: MemAvailable, the limits of the cgroups above us, and
//! memory pressure. Exceeding a cgroup's limit means being killed, not paging.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use discnice_sys::pressure::{self, Pressure, PressureResource};
use discnice_units::Nanos;

/// What is known, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Memory that can be taken without paging, after a margin: the least of the machine's and
    /// of every cgroup's above us.
    pub available: u64,
    /// A cgroup, not the machine, is the bound.
    pub group_limited: bool,
    /// Tasks are already waiting for memory (PSI).
    pub pressed: bool,
}

/// One part in so many is left to others and to errors of the estimate.
const MARGIN: u64 = 16;

/// Share of time with tasks waiting for memory that counts as pressure: one part in so many.
const PRESSED: u64 = 20;
/// How long to watch for it, if there has been some of late: the kernel's own averages remember
/// it for ten seconds, in which the memory may have come free.
const WATCH: Duration = Duration::from_millis(10);

/// Reads the facts for the calling process; files that do not exist say nothing.
#[must_use]
pub fn facts() -> Facts {
    let (available, group_limited) = available();
    Facts { available, group_limited, pressed: pressed() }
}

/// Returns true if tasks wait for memory now; takes some milliseconds if some have of late.
pub fn pressed() -> bool {
    is_pressed(|| pressure::of(PressureResource::Memory))
}

//= gray-box/4.3.1-only-time
/// Memory that can be taken without paging, and whether a cgroup is the bound.
pub fn available() -> (u64, bool) {
    let machine = meminfo("MemAvailable:").unwrap_or(u64::MAX);
    let machine = machine.saturating_sub(margin(meminfo("MemTotal:").unwrap_or(0)));
    let group = groups().iter().map(Group::available).min().unwrap_or(u64::MAX);
    (machine.min(group), group < machine)
}

/// Returns the most that [`Facts::available`] can become if all others give their memory back.
#[must_use]
pub fn ceiling() -> u64 {
    let machine = meminfo("MemTotal:").map_or(u64::MAX, |total| total - margin(total));
    let group = groups().iter().map(Group::most).min();
    machine.min(group.unwrap_or(u64::MAX))
}

/// What of a machine's memory is left to others.
fn margin(total: u64) -> u64 {
    total / MARGIN / 2
}

/// Available share of memory, one part in so many, below which an allocation may have to wait.
const SCARCE: u64 = 10;

/// Returns true if memory is scarce for a process: on the machine, or in a control group above it.
#[must_use]
pub fn is_scarce(process: u32) -> bool {
    let machine = || {
        let (available, total) = (meminfo("MemAvailable:")?, meminfo("MemTotal:")?);
        Some(available < total / SCARCE)
    };
    let group = |group: &Group| group.limit - group.limit / SCARCE < group.needed();
    machine().unwrap_or(true) || groups_of(&process.to_string()).iter().any(group)
}

/// The machine's memory, in bytes; zero where the kernel does not say.
#[must_use]
pub fn machine() -> u64 {
    meminfo("MemTotal:").unwrap_or(0)
}

/// Returns for how long tasks have waited for memory since the machine was started; `None` where
/// the kernel does not say.
#[must_use]
pub fn stalled() -> Option<Nanos> {
    pressure::of(PressureResource::Memory).map(|memory| memory.total)
}

/// Returns the page faults of all processes that had to read, since the machine was started.
#[must_use]
pub fn major_faults() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("pgmajfault "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns true if pages without a file behind them can leave memory.
#[must_use]
pub fn has_swap() -> bool {
    meminfo("SwapTotal:").is_some_and(|bytes| bytes > 0)
}

fn meminfo(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns true if tasks wait for memory now, by the pressure that `read` returns.
fn is_pressed(read: impl Fn() -> Option<Pressure>) -> bool {
    let Some(before) = read() else { return false };
    if before.recent * PRESSED < 100 {
        return false;
    }
    std::thread::sleep(WATCH);
    let after = read().unwrap_or(before);
    u128::from(after.total.minus(before.total).0 * PRESSED) >= WATCH.as_nanos()
}

/// A cgroup's memory account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    limit: u64,
    used: u64,
    /// Cached file pages not in use of late, which the kernel gives up first.
    reclaimable: u64,
}

impl Group {
    fn available(&self) -> u64 {
        self.most().saturating_sub(self.needed())
    }

    /// What can become available.
    fn most(&self) -> u64 {
        self.limit - self.limit / MARGIN
    }

    /// What the kernel does not give up easily.
    fn needed(&self) -> u64 {
        self.used.saturating_sub(self.reclaimable)
    }
}

/// Names of the same things in the two versions of cgroups.
struct Version {
    limits: &'static [&'static str],
    used: &'static str,
    reclaimable: &'static str,
}

const V1: Version = Version {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};
/// Above `memory.high` a group is not killed but paged and slowed down, which is to be avoided
/// as well.
const V2: Version = Version {
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: "inactive_file",
};

/// Returns the groups with a memory limit from ours up to the mount.
fn groups() -> Vec<Group> {
    groups_of("self")
}

/// Returns the groups with a memory limit from that of a process up to the mount.
fn groups_of(process: &str) -> Vec<Group> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let membership = read(&format!("/proc/{process}/cgroup"));
    let mounts = read("/proc/self/mountinfo");
    let mut groups = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let version = match controllers {
            "" => &V2,
            list if list.split(',').any(|name| name == "memory") => &V1,
            _ => continue,
        };
        let Some((mount, root)) = mount_of(&mounts, controllers.is_empty()) else { continue };
        // A process in a container sees its own group as the mount's root.
        let below = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
        let own = mount.join(below.strip_prefix("/").unwrap_or(below));
        let levels = own.ancestors().take_while(|level| level.starts_with(&mount));
        groups.extend(levels.filter_map(|level| read_group(level, version)));
    }
    groups
}

/// Mount point and root of the unified hierarchy, or of the memory controller's own.
fn mount_of(mounts: &str, unified: bool) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let wanted = match unified {
            true => name == "cgroup2",
            false => name == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        wanted.then(|| (PathBuf::from(point), PathBuf::from(root)))
    })
}

fn read_group(level: &Path, version: &Version) -> Option<Group> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(level.join(name)).ok()?.trim().parse().ok()
    };
    // "max" is no number and no limit; version 1 writes a huge one.
    let limit = version.limits.iter().filter_map(|name| number(name)).min()?;
    let used = number(version.used)?;
    let stat = fs::read_to_string(level.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat
        .lines()
        .find_map(|line| line.strip_prefix(version.reclaimable)?.trim().parse().ok())
        .unwrap_or(0);
    Some(Group { limit, used, reclaimable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let facts = facts();
        assert!(facts.available > 0 && facts.available < 1 << 50, "{facts:?}");
        assert!((facts.available..1 << 50).contains(&ceiling()), "{facts:?} {}", ceiling());
    }

    #[test]
    fn mounts_of_both_versions() {
        let mounts = "\
            30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            31 23 0:27 /docker/x /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n";
        let place = |mount: &str, root: &str| Some((PathBuf::from(mount), PathBuf::from(root)));
        assert_eq!(mount_of(mounts, true), place("/sys/fs/cgroup/unified", "/"));
        assert_eq!(mount_of(mounts, false), place("/sys/fs/cgroup/memory", "/docker/x"));
    }

    //= gray-box/4.3.1-only-time
    #[test]
    fn a_group_with_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("memory.max", "1600\n");
        write("memory.high", "max\n");
        write("memory.current", "1000\n");
        write("memory.stat", "anon 1\ninactive_file 600\n");
        let group = read_group(dir.path(), &V2).unwrap();
        assert_eq!(group, Group { limit: 1600, used: 1000, reclaimable: 600 });
        assert_eq!(group.available(), 1100);
        write("memory.max", "max\n");
        assert_eq!(read_group(dir.path(), &V2), None);
    }

    #[test]
    fn pressure_is_what_lasts() {
        let total = std::cell::Cell::new(1);
        let pressure = |recent, step| {
            total.set(total.get() + step);
            Some(Pressure { recent, total: Nanos(total.get()) })
        };
        assert!(!is_pressed(|| None), "the kernel does not say");
        assert!(!is_pressed(|| pressure(4, 5_000_000)), "it has hardly been any of late");
        assert!(!is_pressed(|| pressure(12, 0)), "the past is no pressure");
        assert!(is_pressed(|| pressure(12, 500_000)));
    }
}
