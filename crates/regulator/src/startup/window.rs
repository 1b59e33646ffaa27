//! How much one page fault reads: the read-ahead window of the file's device.

use discnice_sys::opened::Opened;

use crate::startup::Bytes;
use crate::startup::text::Text;

/// Read-ahead where the system does not tell (btrfs, overlayfs, no /sys): as much as it gets.
const UNKNOWN: u64 = 8 << 20;
/// How much of a file is brought in at most, in windows. Of the largest files little is used: what
/// lies behind is left to the page faults, each of which reads one window.
const WINDOWS: u64 = 64;

/// The device that was asked for last.
#[derive(Debug, Default)]
pub struct Known {
    device: u64,
    window: u64,
}

impl Known {
    /// How much of a file on this device is worth bringing in.
    pub fn reach(&mut self, device: u64) -> u64 {
        if self.window == 0 || self.device != device {
            *self = Self { device, window: window(device).unwrap_or(UNKNOWN) };
        }
        self.window.saturating_mul(WINDOWS)
    }
}

/// The window of a disk, or of the disk that a partition is on, in bytes.
fn window(device: u64) -> Option<u64> {
    let of = |queue: &[u8]| {
        let mut path = Text::new();
        let fits = path.push(b"/sys/dev/block/")
            && push_number(&mut path, libc::major(device))
            && path.push(b":")
            && push_number(&mut path, libc::minor(device))
            && path.push(queue);
        let path = path.path().filter(|_| fits)?;
        kibibytes(&Opened::open(libc::AT_FDCWD, path).ok()?)
    };
    of(b"/queue/read_ahead_kb").or_else(|| of(b"/../queue/read_ahead_kb"))
}

fn push_number(path: &mut Text, number: u32) -> bool {
    number.checked_div(10).filter(|more| *more > 0).is_none_or(|more| push_number(path, more))
        && path.push(&[b'0' + (number % 10) as u8])
}

/// The number of KiB in the file, in bytes.
fn kibibytes(file: &impl Bytes) -> Option<u64> {
    let mut text = [0; 20];
    let length = file.read_at(0, &mut text);
    let digits = text.get(..length)?.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    (length > 0).then_some(number.saturating_mul(1 << 10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_disk_of_the_root_directory_has_a_window() {
        let device = std::fs::metadata("/").unwrap().dev();
        let name = std::format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
        let text = ["/queue/read_ahead_kb", "/../queue/read_ahead_kb"]
            .iter()
            .find_map(|file| std::fs::read_to_string(std::format!("{name}{file}")).ok());
        let expected = text.map(|text| text.trim().parse::<u64>().unwrap() << 10);
        assert_eq!(window(device), expected);
    }

    #[test]
    fn what_is_no_disk_is_unknown() {
        assert_eq!(window(libc::makedev(0, 4_000_000)), None);
        assert_eq!(Known::default().reach(0), UNKNOWN * WINDOWS);
    }
}
