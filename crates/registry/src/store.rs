//! Makes, lists and maps blocks of shared memory.
//!
//! A System V segment comes first: it can be reached after exec(2), in any directory, chroot and
//! mount namespace, with all descriptors closed, and cannot be shortened. Where the system has none
//! left (another user may have taken all), or drops those that are not mapped, a file of the
//! private directory serves.

#![allow(unsafe_code, reason = "blocks are unmapped, and a new file is mapped")]

use std::ffi::CString;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use discnice_paths::Private;
use discnice_sys::block::{self, Block, BlockId, FILE_NAME, Refusal, Store};
use discnice_sys::{Errno, process, shm};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

/// The kernel's list of segments. proc_sysvipc_shm(5)
const SEGMENTS: &str = "/proc/sysvipc/shm";
/// Holds 1 if a segment is removed as soon as no process has it mapped. proc_sys_kernel(5)
const FORGETFUL: &str = "/proc/sys/kernel/shm_rmid_forced";

/// Returns the time in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns an unpredictable number: the standard library's seeds are the kernel's.
pub(crate) fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Converts a kernel error to one with a text for people.
pub(crate) fn explain(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

/// Returns true if segments are removed as soon as no process has them mapped.
#[must_use]
pub(crate) fn is_forgetful() -> bool {
    fs::read(FORGETFUL).is_ok_and(|text| text.first() == Some(&b'1'))
}

/// A new zeroed block that is only this user's.
///
/// # Errors
/// There is neither a segment nor a private directory with room; the error gives both reasons.
pub(crate) fn create(length: usize) -> io::Result<Block> {
    let why = if is_forgetful() {
        "kernel.shm_rmid_forced is 1".to_owned()
    } else {
        match create_segment(length) {
            Ok(block) => return Ok(block),
            Err(error) => error.to_string(),
        }
    };
    create_file(length).map_err(|error| {
        let why = format!("no System V segment ({why}) and no file: {error}");
        io::Error::new(error.kind(), why)
    })
}

fn create_segment(length: usize) -> io::Result<Block> {
    let segment = shm::create(length).map_err(explain)?;
    block::adopt_segment(segment).map_err(|refusal| {
        let _ = shm::remove(segment);
        match refusal {
            Refusal::Unavailable(errno) => explain(errno),
            Refusal::Foreign => io::ErrorKind::PermissionDenied.into(),
        }
    })
}

fn create_file(length: usize) -> io::Result<Block> {
    let directory = discnice_paths::runtime()?;
    let id = BlockId::of_file(random());
    let name = id.file_name().to_string();
    let file = directory.open(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
    // All of it now: a page that no room is found for later would end a program by SIGBUS.
    let made = fallocate(file.as_fd(), FallocateFlags::empty(), 0, length as u64)
        .map_err(io::Error::from)
        .and_then(|()| block::map_shared(file.as_raw_fd(), length).map_err(explain));
    match made {
        Ok(start) => Ok(Block { id, start, length, removed: false }),
        Err(error) => {
            let _ = directory.remove(&name);
            Err(error)
        }
    }
}

/// Maps a block of `length` bytes, if it is this user's alone.
pub(crate) fn adopt(id: BlockId, length: usize) -> Option<Block> {
    let block = match id.store()? {
        Store::Segment(segment) => block::adopt_segment(segment).ok()?,
        Store::File(_) => {
            let path = discnice_paths::runtime().ok()?.path().join(id.file_name().to_string());
            let path = CString::new(path.as_os_str().as_bytes()).ok()?;
            block::adopt_file(id, &path, length).ok()?
        }
    };
    if block.length == length {
        return Some(block);
    }
    // SAFETY: nothing refers to the mapping.
    unsafe { block.unmap() };
    None
}

/// Destroys a block; processes that have it mapped keep it until they end.
///
/// # Errors
/// The kernel's reason.
pub(crate) fn remove(id: BlockId) -> io::Result<()> {
    match id.store() {
        Some(Store::Segment(segment)) => shm::remove(segment).map_err(explain),
        Some(Store::File(_)) => discnice_paths::runtime()?.remove(id.file_name().to_string()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A block that may be a class of this user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: BlockId,
    /// Says if a process has it mapped, where the kernel tells.
    pub(crate) attached: Option<bool>,
    /// When a process last mapped or unmapped it, or it was made; seconds since 1970.
    pub(crate) touched: u64,
}

/// All blocks of `length` bytes of this user.
///
/// # Errors
/// The kernel's list cannot be read.
pub(crate) fn list(length: usize) -> io::Result<Vec<Listed>> {
    let mut blocks = match fs::read_to_string(SEGMENTS) {
        Ok(text) => segments(&text, process::user(), length),
        // Without System V memory there are only files.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if let Ok(directory) = discnice_paths::runtime() {
        blocks.extend(files(&directory, length));
    }
    Ok(blocks)
}

/// The segments in the kernel's list that `user` made, and owns still.
fn segments(list: &str, user: u32, length: usize) -> Vec<Listed> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let is_own = number(7)? == u64::from(user) && number(9)? == u64::from(user);
        let id = BlockId::of_segment(fields.get(1)?.parse().ok()?);
        let touched = number(11)?.max(number(12)?).max(number(13)?);
        let attached = Some(number(6)? > 0);
        (is_own && number(3)? == length as u64).then_some(Listed { id, attached, touched })
    };
    list.lines().skip(1).filter_map(parse).collect()
}

fn files(directory: &Private, length: usize) -> Vec<Listed> {
    let names = directory.names().unwrap_or_default();
    let listed = |name: &Vec<u8>| {
        let digits = name.strip_prefix(FILE_NAME.as_bytes()).filter(|digits| digits.len() == 16)?;
        let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let id = BlockId::from_claim(number);
        let file =
            directory.open(id.file_name().to_string(), OFlags::RDONLY).ok()?.metadata().ok()?;
        let is_file = matches!(id.store(), Some(Store::File(_)));
        let touched = u64::try_from(file.mtime()).ok()?;
        (is_file && file.len() == length as u64).then_some(Listed { id, attached: None, touched })
    };
    names.iter().filter_map(listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_counts_only_if_its_owner_made_it() {
        let list = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
                    0      5  600  4096  1  1  2  1000  1000  1000  1000  7  9  8  0  0\n\
                    0      6  600  4096  1  1  2  1000  1000  1001  1001  7  9  8  0  0\n\
                    0      7  600  8192  1  1  2  1000  1000  1000  1000  7  9  8  0  0\n\
                    0      8  600  4096  1  1  0  1000  1000  1000  1000  0  0  8  0  0\n\
                    torn\n";
        let found = segments(list, 1000, 4096);
        let expected = |id, attached, touched| {
            let id = BlockId::of_segment(id);
            Listed { id, attached: Some(attached), touched }
        };
        assert_eq!(found, [expected(5, true, 9), expected(8, false, 8)]);
    }

    #[test]
    fn a_block_is_found_until_it_is_removed() {
        for make in [create_segment, create_file] {
            let made = make(12_288).unwrap();
            assert!(list(12_288).unwrap().iter().any(|one| one.id == made.id));
            let again = adopt(made.id, 12_288).unwrap();
            // SAFETY: both are mappings of so many bytes.
            unsafe {
                made.start.add(12_287).write(7);
                assert_eq!(again.start.add(12_287).read(), 7);
            }
            assert!(adopt(made.id, 4096).is_none(), "of another length");
            remove(made.id).unwrap();
            assert!(!again.removed);
            // SAFETY: nothing refers to the mappings.
            unsafe {
                again.unmap();
                made.unmap();
            }
            assert!(adopt(made.id, 12_288).is_none());
            assert!(list(12_288).unwrap().iter().all(|one| one.id != made.id));
        }
    }
}
