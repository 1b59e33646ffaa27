//! Physical extents by the FIEMAP ioctl (Documentation/filesystems/fiemap.rst in the kernel).
#![allow(unsafe_code, reason = "FS_IOC_FIEMAP has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;

/// `FIEMAP_EXTENT_LAST`: no extent follows.
const LAST: u32 = 0x1;
/// `FIEMAP_EXTENT_UNKNOWN | _DELALLOC | _DATA_INLINE | _DATA_TAIL`: the address means nothing.
const NO_ADDRESS: u32 = 0x2 | 0x4 | 0x200 | 0x400;

/// Extents asked for in one call.
const BATCH: usize = 32;

/// A run of a file that lies in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte in the file.
    pub logical: u64,
    /// First byte on the device.
    pub physical: u64,
    /// Bytes.
    pub length: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Request<const N: usize> {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; N],
}

/// Asks for up to `N` extents from the logical byte `start` on.
fn ask<const N: usize>(file: &File, start: u64) -> io::Result<(Vec<Extent>, Option<u64>)> {
    let mut request = Request::<N> {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped: 0,
        count: u32::try_from(N).unwrap_or(u32::MAX),
        reserved: 0,
        extents: [RawExtent::default(); N],
    };
    // SAFETY: the structure has the kernel's layout (linux/fiemap.h) with room for `count`
    // extents, which is all that the kernel fills in, and outlives the call.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut request) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = &request.extents[..(request.mapped as usize).min(N)];
    let next = mapped
        .last()
        .filter(|last| last.flags & LAST == 0 && last.length > 0)
        .map(|last| last.logical + last.length);
    let known = mapped.iter().filter(|extent| extent.flags & NO_ADDRESS == 0);
    let extents = known
        .map(|raw| Extent { logical: raw.logical, physical: raw.physical, length: raw.length })
        .collect();
    Ok((extents, next))
}

//= gray-box/4.2.5-other-layouts
/// Returns the physical address of the first extent; `None` if there is none or the file system
/// does not tell.
#[must_use]
pub fn first_extent(file: &File) -> Option<u64> {
    Some(ask::<1>(file, 0).ok()?.0.first()?.physical)
}

/// All extents with a known address, in file order.
///
/// # Errors
/// `EOPNOTSUPP` where the file system does not tell.
pub fn extents(file: &File) -> io::Result<Vec<Extent>> {
    let mut all = Vec::new();
    let mut start = Some(0);
    while let Some(from) = start {
        let (extents, next) = ask::<BATCH>(file, from)?;
        all.extend(extents);
        start = next;
    }
    Ok(all)
}
