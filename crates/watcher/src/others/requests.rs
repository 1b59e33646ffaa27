//! How large the requests of each disk are at most: what a disk has in hand is known by their number only.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use discnice_units::Moment;

use crate::tuning;

/// The largest requests of the disks that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    known: HashMap<u64, u64>,
    until: Moment,
}

impl Requests {
    /// Forgets what may have changed.
    pub fn forget_old(&mut self, now: Moment) {
        if now >= self.until {
            self.known.clear();
            self.until = now.plus(tuning::others::REQUESTS_FOR);
        }
    }

    /// Returns how many bytes the largest request of a disk has (major number in the upper half, minor in the lower); zero if
    /// that is not known.
    pub fn largest(&mut self, disk: u64) -> u64 {
        *self.known.entry(disk).or_insert_with(|| {
            let (major, minor) = (disk >> 32, disk & 0xffff_ffff);
            largest_of(format!("/sys/dev/block/{major}:{minor}").as_ref()).unwrap_or(0)
        })
    }
}

/// Reads the size from the directory of a disk in sysfs. A driver without a queue of requests (device mapper, md, zram) is given
/// larger ones than it says. Documentation/ABI/stable/sysfs-block
fn largest_of(disk: &Path) -> Option<u64> {
    if !disk.join("mq").exists() {
        return None;
    }
    let text = fs::read_to_string(disk.join("queue/max_sectors_kb")).ok()?;
    text.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(files: &[(&str, &str)]) -> tempfile::TempDir {
        let disk = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = disk.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        disk
    }

    #[test]
    fn a_queue_of_requests_says_how_large_they_are() {
        let usb = disk(&[("mq/0/nr_tags", "1\n"), ("queue/max_sectors_kb", "120\n")]);
        assert_eq!(largest_of(usb.path()), Some(120 << 10));
    }

    #[test]
    fn what_is_composed_of_disks_does_not() {
        let mapped = disk(&[("queue/max_sectors_kb", "1280\n")]);
        assert_eq!(largest_of(mapped.path()), None);
        assert_eq!(largest_of(Path::new("/no/such/disk")), None);
    }

    #[test]
    fn a_change_is_noticed_after_a_while() {
        let (mut requests, nonexistent) = (Requests::default(), u64::MAX);
        requests.forget_old(Moment::FIRST);
        assert_eq!(requests.largest(nonexistent), 0);
        requests.forget_old(Moment(1));
        assert_eq!(requests.known.len(), 1);
        requests.forget_old(Moment::FIRST.plus(tuning::others::REQUESTS_FOR));
        assert!(requests.known.is_empty());
    }
}
