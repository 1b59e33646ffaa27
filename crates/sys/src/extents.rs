//! Where a file has data, and where holes: the FIEMAP ioctl (Documentation/filesystems/fiemap.rst in
//! the kernel), which moves no offset, as lseek(2) with `SEEK_DATA` would.

use crate::raw::{Errno, call};

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: usize = 0xC020_660B;
/// `FIEMAP_EXTENT_LAST`: no extent follows.
const LAST: u32 = 1;
/// `FIEMAP_EXTENT_UNWRITTEN`: room that was allocated and never written, which reads as zeroes.
const UNWRITTEN: u32 = 1 << 11;
/// `FIEMAP_EXTENT_DATA_INLINE`: the data lie among the file system's own, which reading has already read.
const INLINE: u32 = 1 << 9;
/// `FIEMAP_EXTENT_SHARED`: another file has the same blocks.
const SHARED: u32 = 1 << 13;
/// Extents asked for at once.
const AT_ONCE: usize = 8;
/// Questions about one range; of a range in more pieces what is left counts as data.
const QUESTIONS: usize = 8;

/// `struct fiemap_extent`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_flags: [u32; 3],
}

/// `struct fiemap`.
#[derive(Default)]
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// Bytes of a range that stand on the disk, or will; the rest are holes, which reading finds in no
/// place.
///
/// # Errors
/// `EOPNOTSUPP` and others on file systems that do not tell.
pub fn data(fd: i32, offset: u64, length: u64) -> Result<u64, Errno> {
    let end = offset.saturating_add(length);
    let (mut at, mut data) = (offset, 0);
    for _ in 0..QUESTIONS {
        let count = AT_ONCE as u32;
        let mut request = Request { start: at, length: end - at, count, ..Request::default() };
        // SAFETY: the kernel writes the header and at most `count` extents, which follow it.
        unsafe { call!(libc::SYS_ioctl, fd, FS_IOC_FIEMAP, &raw mut request)? };
        let told = request.extents.get(..request.mapped as usize).unwrap_or(&[]);
        for extent in told {
            let behind = extent.logical.saturating_add(extent.length);
            let inside = behind.min(end).saturating_sub(extent.logical.max(at));
            data += if extent.flags & (UNWRITTEN | INLINE) == 0 { inside } else { 0 };
        }
        match told.last() {
            Some(last) if last.flags & LAST == 0 && told.len() == AT_ONCE => {
                at = last.logical.saturating_add(last.length);
            }
            _ => return Ok(data),
        }
        if at >= end {
            return Ok(data);
        }
    }
    Ok(data + (end - at))
}

/// Returns true if the byte at `offset` lies in blocks that belong to another file as well
/// (reflink).
///
/// # Errors
/// As [`data`]; `ENOENT` where there is no such byte on the disk.
pub fn is_shared(fd: i32, offset: u64) -> Result<bool, Errno> {
    let mut request = Request { start: offset, length: 1, count: 1, ..Request::default() };
    // SAFETY: the kernel writes the header and at most one extent.
    unsafe { call!(libc::SYS_ioctl, fd, FS_IOC_FIEMAP, &raw mut request)? };
    let first = request.extents.first().filter(|_| request.mapped > 0);
    first.map(|extent| extent.flags & SHARED != 0).ok_or(Errno(libc::ENOENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_requirements::skip;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn holes_hold_no_data() {
        let path = format!("/var/tmp/discnice-extents-{}", std::process::id());
        let file = std::fs::File::create_new(&path).expect("a file");
        std::fs::remove_file(&path).expect("it was just made");
        for piece in 0..20u64 {
            file.write_all_at(&[1; 4096], piece * (1 << 20)).expect("room");
        }
        file.sync_all().expect("a disk");
        let all = match data(file.as_raw_fd(), 0, 20 << 20) {
            Err(Errno(libc::EOPNOTSUPP)) => skip!("no extents are told of {path}"),
            Err(error) => panic!("{error:?}"),
            Ok(all) => all,
        };
        assert_eq!(all, 20 * 4096);
        assert_eq!(is_shared(file.as_raw_fd(), 100), Ok(false));
        assert_eq!(is_shared(file.as_raw_fd(), 8192), Err(Errno(libc::ENOENT)));
        assert_eq!(data(file.as_raw_fd(), 8192, 4096), Ok(0));
        assert_eq!(data(file.as_raw_fd(), (3 << 20) + 100, 8192), Ok(4096 - 100));
        assert_eq!(data(file.as_raw_fd(), u64::MAX - 10, 20), Err(Errno(libc::EFBIG)));
        assert!(data(-1, 0, 1).is_err());
    }
}
