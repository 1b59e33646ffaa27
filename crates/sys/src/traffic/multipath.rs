//! Paths of NVMe disks.
//!
//! Where a disk may have several controllers, the kernel lists each path to it (`nvme0c1n2`) beside the disk itself
//! (`nvme0n2`), without a device number: CONFIG_NVME_MULTIPATH, drivers/nvme/host/multipath.c. What passes a path is counted
//! there, and for the disk as well only since Linux 6.4. Before, the disk's own counters stay zero.

use core::ffi::CStr;

use crate::file::read_small;
use crate::lines::number;

/// Longest path of a file that is read here, with its end.
const LONGEST: usize = 256;

/// A disk with paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Namespace<'a> {
    /// `nvme0`
    subsystem: &'a [u8],
    /// `n2`
    rest: &'a [u8],
}

impl<'a> Namespace<'a> {
    /// The disk that the path of this name leads to; `None` if it is none.
    pub(super) fn of_path(name: &'a [u8]) -> Option<Self> {
        let digits = name.strip_prefix(b"nvme")?.iter().take_while(|byte| byte.is_ascii_digit());
        let (subsystem, rest) = name.split_at_checked(b"nvme".len() + digits.count())?;
        let controller = rest.strip_prefix(b"c")?;
        let digits = controller.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = controller.get(digits..).filter(|rest| rest.starts_with(b"n"))?;
        Some(Self { subsystem, rest })
    }

    /// Returns true if it counts by itself what passes its paths; `None` where that is not told. `blocks` is the folder of block
    /// devices.
    pub(super) fn counts(self, blocks: &[u8]) -> Option<bool> {
        let mut buffer = [0; LONGEST];
        let counters = self.read(blocks, b"/stat\0", &mut buffer)?;
        Some(counters.iter().any(|byte| (b'1'..=b'9').contains(byte)))
    }

    /// Returns its number, as [`super::Disk::id`] has it.
    pub(super) fn number(self, blocks: &[u8]) -> Option<u64> {
        let mut buffer = [0; LONGEST];
        let mut numbers = self.read(blocks, b"/dev\0", &mut buffer)?.split(|byte| *byte == b':');
        Some(number(numbers.next()?) << 32 | number(numbers.next()?))
    }

    /// The beginning of a file of the disk.
    fn read<'b>(self, blocks: &[u8], file: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let mut path = [0; LONGEST];
        let parts = [blocks, self.subsystem, self.rest, file].into_iter().flatten();
        path.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
        let length = read_small(CStr::from_bytes_until_nul(&path).ok()?, buffer).ok()?;
        buffer.get(..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_disks() {
        let found = Namespace::of_path(b"nvme10c2n31");
        assert_eq!(found, Some(Namespace { subsystem: b"nvme10", rest: b"n31" }));
        for other in ["nvme0n1", "nvme0n1p2", "nvme0c0", "sdc", "nvme0", ""] {
            let found = Namespace::of_path(other.as_bytes());
            assert!(found.is_none() || other == "{other}");
        }
    }
}
