//! Checks that no other work keeps the machine busy. Figures from a busy machine are wrong for ever
//! after.

use std::ffi::CStr;
use std::fs;
use std::thread;
use std::time::Duration;

use discnice_sys::traffic;
use discnice_units::Nanos;

const LIST: &CStr = c"/proc/diskstats";
const BLOCKS: &[u8] = b"/sys/class/block/";

/// How long to watch.
const WATCH: Duration = Duration::from_millis(500);

/// Shares of the time that still count as quiet.
const CPU_QUIET: f64 = 0.15;
const DISK_QUIET: f64 = 0.10;

/// Watches the machine for half a second; says what keeps it busy, if anything does.
#[must_use]
pub fn busy() -> Option<String> {
    let before = (cpu(), disks(LIST, BLOCKS));
    thread::sleep(WATCH);
    let after = (cpu(), disks(LIST, BLOCKS));
    if let (Some((busy_before, all_before)), Some((busy_after, all_after))) = (before.0, after.0) {
        let all = all_after.saturating_sub(all_before).max(1);
        let share = busy_after.saturating_sub(busy_before) as f64 / all as f64;
        if share > CPU_QUIET {
            return Some(format!("the processors are busy {:.0} % of the time", share * 100.0));
        }
    }
    busy_disk(&before.1, &after.1)
}

/// Says which disk was busy, if one was, between two looks.
fn busy_disk(before: &[Disk], after: &[Disk]) -> Option<String> {
    after.iter().find_map(|disk| {
        let earlier = before.iter().find(|other| other.id == disk.id)?.busy;
        let share = disk.busy.minus(earlier).as_secs_f64() / WATCH.as_secs_f64();
        let name = &disk.name;
        (share > DISK_QUIET)
            .then(|| format!("disk {name} is busy {:.0} % of the time", share * 100.0))
    })
}

/// Busy and all ticks of all processors (proc_stat(5)).
fn cpu() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .filter_map(|tick| tick.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is in user time already.
    let all = ticks.iter().take(8).sum();
    let idle: u64 = ticks.get(3)? + ticks.get(4)?;
    Some((u64::saturating_sub(all, idle), all))
}

/// A disk.
#[derive(Debug)]
struct Disk {
    /// Its number.
    id: u64,
    name: String,
    /// For how long it has had something to do.
    busy: Nanos,
}

/// All disks of a list that are not made of others (Documentation/admin-guide/iostats.rst); none if it cannot be read.
fn disks(list: &CStr, blocks: &[u8]) -> Vec<Disk> {
    let mut all: Vec<Disk> = Vec::new();
    let _ = traffic::disks_in(list, blocks, |disk| {
        if !disk.is_physical() {
            return;
        }
        let (id, busy) = (disk.id, disk.busy);
        let name = || String::from_utf8_lossy(disk.name()).into_owned();
        match all.iter_mut().find(|known| known.id == id) {
            // The disk has the number of its paths.
            Some(known) => {
                known.busy = known.busy.max(busy);
                if !disk.is_path() {
                    known.name = name();
                }
            }
            None => all.push(Disk { id, name: name(), busy }),
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn the_kernel_is_understood() {
        let (busy, all) = cpu().unwrap();
        assert!(busy > 0 && busy <= all);
        let is_disk = |name: &str| ["sd", "vd", "nvme"].iter().any(|kind| name.starts_with(kind));
        let has_disks = fs::read_dir("/sys/block").is_ok_and(|mut all| {
            all.any(|one| one.is_ok_and(|one| one.file_name().to_str().is_some_and(is_disk)))
        });
        assert!(!disks(LIST, BLOCKS).is_empty() || !has_disks);
    }

    /// A disk with two paths that were busy for so long, below a device-mapper's and a loop device.
    fn seen(milliseconds: u32) -> Vec<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let (list, block) = (folder.path().join("diskstats"), folder.path().join("nvme0n1"));
        let busy = |name, busy| format!("{name} 9 0 9 9 9 0 9 9 0 {busy} 9\n");
        let lines = [
            busy("253 0 dm-0", milliseconds),
            busy("7 0 loop0", milliseconds),
            busy("0 0 nvme0c0n1", milliseconds),
            busy("0 0 nvme0c1n1", milliseconds / 2),
            busy("259 1 nvme0n1", 0),
        ];
        fs::write(&list, lines.concat()).unwrap();
        fs::create_dir(&block).unwrap();
        fs::write(block.join("stat"), "0 0 0 0 0 0 0 0 0 0 0\n").unwrap();
        fs::write(block.join("dev"), "259:1\n").unwrap();
        let list = CString::new(list.as_os_str().as_bytes()).unwrap();
        disks(&list, &[folder.path().as_os_str().as_bytes(), b"/"].concat())
    }

    #[test]
    fn what_passes_a_path_or_lies_above_a_disk_is_told_as_that_disk() {
        let told = busy_disk(&seen(100), &seen(300));
        assert_eq!(told.as_deref(), Some("disk nvme0n1 is busy 40 % of the time"));
        assert_eq!(busy_disk(&seen(300), &seen(340)), None);
    }
}
