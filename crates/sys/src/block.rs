//! Blocks of shared memory that several processes of one user have mapped: how they are named, and
//! which are trusted.
//!
//! A block is a System V segment or, where the system has none left, a file of the user's private
//! directory. A block named by another process is checked here, wherever it is mapped, and nowhere
//! else: only a block that this user made, and to which no other user was ever given access, is
//! trusted.

use core::ffi::CStr;
use core::fmt;
use core::ptr::NonNull;

use crate::opened::Opened;
use crate::raw::{Errno, call};
use crate::{file, memory, process, shm};

/// Set in the ids of blocks that are files.
const FILE: u64 = 1 << 63;
/// What the names of such files begin with; the id follows, in sixteen hexadecimal digits.
pub const FILE_NAME: &str = "block-";

/// Names a block on this machine, as processes tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(u64);

/// Kind of memory that a block lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// In the System V segment of this number.
    Segment(i32),
    /// In the file that carries this number in its name.
    File(u64),
}

impl BlockId {
    /// The id of a System V segment.
    #[must_use]
    pub const fn of_segment(id: i32) -> Self {
        Self(id.unsigned_abs() as u64)
    }

    /// The id of the file with this number; its highest bit does not count.
    #[must_use]
    pub const fn of_file(number: u64) -> Self {
        Self(number | FILE)
    }

    /// The id as one word. Never `u64::MAX` for a segment.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The id that a word claims to be.
    #[must_use]
    pub const fn from_claim(word: u64) -> Self {
        Self(word)
    }

    /// Returns the block's memory; `None` for a word that names none.
    #[must_use]
    pub fn store(self) -> Option<Store> {
        if self.0 & FILE != 0 {
            return Some(Store::File(self.0));
        }
        i32::try_from(self.0).ok().map(Store::Segment)
    }
}

/// The name of the file that a block lies in, if it lies in one.
#[derive(Debug, Clone, Copy)]
pub struct FileName(BlockId);

impl BlockId {
    /// The name of its file.
    #[must_use]
    pub const fn file_name(self) -> FileName {
        FileName(self)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FILE_NAME}{:016x}", self.0)
    }
}

impl fmt::LowerHex for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A mapped block.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Its name.
    pub id: BlockId,
    /// Address of the mapping.
    pub start: NonNull<u8>,
    /// Bytes.
    pub length: usize,
    /// Set if the block was removed, so that no further process will find it.
    pub removed: bool,
}

impl Block {
    /// Unmaps the block.
    ///
    /// # Safety
    /// No reference into the mapping may be left.
    pub unsafe fn unmap(self) {
        match self.id.store() {
            // SAFETY: the caller vouches that the mapping is not in use.
            Some(Store::File(_)) => unsafe { memory::free(self.start, self.length) },
            // SAFETY: as above.
            _ => unsafe { shm::detach(self.start) },
        }
    }
}

/// Why a block was not mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is none of this name, or it cannot be mapped.
    Unavailable(Errno),
    /// Another user made it, owns it or may use it.
    Foreign,
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Unavailable(errno)
    }
}

/// Maps the segment `id`, if it is this user's alone.
///
/// # Errors
/// Why not; it is not mapped then.
pub fn adopt_segment(id: i32) -> Result<Block, Refusal> {
    let start = shm::attach(id)?;
    // Asked while it is mapped: until then, the number could come to mean another segment.
    let facts = shm::inspect(id);
    match facts {
        Ok(facts) if facts.is_of(process::user()) => Ok(Block {
            id: BlockId::of_segment(id),
            start,
            length: facts.size,
            removed: facts.is_removed(),
        }),
        other => {
            // SAFETY: nothing refers to the mapping.
            unsafe { shm::detach(start) };
            Err(other.err().map_or(Refusal::Foreign, Refusal::Unavailable))
        }
    }
}

/// Maps the block `id` from the file at `path`, if it is this user's alone and `length` bytes long.
///
/// # Errors
/// Why not; it is not mapped then.
pub fn adopt_file(id: BlockId, path: &CStr, length: usize) -> Result<Block, Refusal> {
    let file = Opened::open_shared(path)?;
    let status = file::status(file.fd())?;
    let private = status.regular && status.owner == process::user() && status.mode & 0o077 == 0;
    if !private || status.size != length as u64 {
        return Err(Refusal::Foreign);
    }
    let start = map_shared(file.fd(), length)?;
    Ok(Block { id, start, length, removed: status.links == 0 })
}

/// Maps the first `length` bytes of a file, shared. mmap(2).
///
/// # Errors
/// The kernel's reason.
pub fn map_shared(fd: i32, length: usize) -> Result<NonNull<u8>, Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing uses.
    let address = unsafe { call!(libc::SYS_mmap, 0, length, protection, libc::MAP_SHARED, fd, 0)? };
    NonNull::new(address as *mut u8).ok_or(Errno(libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn ids_say_where_a_block_lies() {
        assert_eq!(BlockId::of_segment(31).store(), Some(Store::Segment(31)));
        assert_eq!(BlockId::of_file(31).store(), Some(Store::File(FILE | 31)));
        assert_eq!(BlockId::from_claim(1 << 40).store(), None);
        assert_eq!(format!("{:x}", BlockId::of_segment(31)), "1f");
    }

    #[test]
    fn a_segment_that_others_may_use_is_refused() {
        let own = shm::create(8192).unwrap();
        let block = adopt_segment(own).unwrap();
        assert!(block.length == 8192 && !block.removed);
        shm::remove(own).unwrap();
        let again = adopt_segment(own).unwrap();
        assert!(again.removed, "it lives on in whoever has it mapped");
        // SAFETY: nothing refers to the mappings.
        unsafe {
            block.unmap();
            again.unmap();
        }
        assert_eq!(adopt_segment(own).unwrap_err(), Refusal::Unavailable(Errno(libc::EINVAL)));
        // SAFETY: numbers only; a segment of this test's own.
        let open = unsafe { libc::shmget(libc::IPC_PRIVATE, 8192, libc::IPC_CREAT | 0o622) };
        assert_eq!(adopt_segment(open).unwrap_err(), Refusal::Foreign);
        assert_eq!(shm::inspect(open).unwrap().attached, 0);
        shm::remove(open).unwrap();
    }

    #[test]
    fn only_a_private_file_of_the_right_length_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("block");
        std::fs::write(&path, [7; 8192]).unwrap();
        let (id, name) = (BlockId::of_file(9), CString::new(path.as_os_str().as_bytes()).unwrap());
        let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        set(0o600);
        let block = adopt_file(id, &name, 8192).unwrap();
        // SAFETY: the file is mapped and 8192 bytes long.
        assert_eq!(unsafe { block.start.add(8191).read() }, 7);
        // SAFETY: nothing refers to the mapping.
        unsafe { block.unmap() };
        assert_eq!(adopt_file(id, &name, 4096).unwrap_err(), Refusal::Foreign);
        set(0o640);
        assert_eq!(adopt_file(id, &name, 8192).unwrap_err(), Refusal::Foreign);
        set(0o600);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        let link = CString::new(link.as_os_str().as_bytes()).unwrap();
        let refused = adopt_file(id, &link, 8192).unwrap_err();
        assert_eq!(refused, Refusal::Unavailable(Errno(libc::ELOOP)));
        let folder = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        assert!(adopt_file(id, &folder, 8192).is_err(), "a directory");
    }
}
