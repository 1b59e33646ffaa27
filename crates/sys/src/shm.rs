//! System V shared memory: a segment has no descriptor, no path and a fixed size, which is just
//! what a guest in other programs needs. shmget(2), shmat(2), shmctl(2).
//!
//! Segments are made without a key, so that no other user can find or take one by its name. A segment's
//! creator keeps access to it after giving it to another owner, so its owner alone says nothing: see
//! [`Segment::is_of`].

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::raw::{Errno, call};

/// In a segment's mode: it was removed and goes with its last mapping (`SHM_DEST`, shmctl(2)).
pub const REMOVED: u32 = 0o1000;

/// What the kernel knows of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Owner's user id.
    pub owner: u32,
    /// Creator's user id.
    pub creator: u32,
    /// Permission bits, and [`REMOVED`].
    pub mode: u32,
    /// Size in bytes; fixed for ever.
    pub size: usize,
    /// How many mappings exist: kept by the kernel, so right also after kill -9.
    pub attached: u64,
}

impl Segment {
    /// Returns true if only this user can ever have had access to the segment: it made it, owns it,
    /// and grants no other user anything.
    #[must_use]
    pub fn is_of(&self, user: u32) -> bool {
        self.owner == user && self.creator == user && self.mode & 0o077 == 0
    }

    /// Returns true if the segment was removed and lives on only in the processes that have it
    /// mapped.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.mode & REMOVED != 0
    }
}

/// Creates a zeroed segment that only this user may attach. shmget(2) with `IPC_PRIVATE`.
///
/// # Errors
/// `ENOSPC` at the system's limit, `ENOSYS` without System V IPC.
pub fn create(size: usize) -> Result<i32, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_shmget, libc::IPC_PRIVATE, size, libc::IPC_CREAT | 0o600) }
        .map(|id| id as i32)
}

/// Maps the segment. shmat(2).
///
/// # Errors
/// `EINVAL` when it is gone, `EACCES` when it is another user's.
pub fn attach(id: i32) -> Result<NonNull<u8>, Errno> {
    // SAFETY: with address 0 the kernel chooses addresses that nothing uses.
    let address = unsafe { call!(libc::SYS_shmat, id, 0, 0)? };
    NonNull::new(address as *mut u8).ok_or(Errno(libc::EINVAL))
}

/// Unmaps a segment. shmdt(2).
///
/// # Safety
/// No reference into the mapping may be left.
pub unsafe fn detach(start: NonNull<u8>) {
    // SAFETY: the caller vouches that the mapping is not in use.
    let _ = unsafe { call!(libc::SYS_shmdt, start.as_ptr()) };
}

/// Takes the pages of shared memory out of this process's memory; they stay in the segment or file, and come
/// back when they are touched. madvise(2), `MADV_DONTNEED`.
///
/// # Safety
/// All of the range is of one shared mapping: private memory would be lost.
pub unsafe fn let_pages_go(start: NonNull<u8>, length: usize) {
    // SAFETY: the caller vouches that the memory is shared; its contents are not changed.
    let _ = unsafe { call!(libc::SYS_madvise, start.as_ptr(), length, libc::MADV_DONTNEED) };
}

/// What the kernel knows of it. shmctl(2) with `IPC_STAT`.
///
/// # Errors
/// `EINVAL` when it is gone, `EACCES` when it is another user's.
pub fn inspect(id: i32) -> Result<Segment, Errno> {
    let mut ds = MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: the kernel fills one struct shmid_ds of the native layout, which libc declares.
    unsafe { call!(libc::SYS_shmctl, id, libc::IPC_STAT, ds.as_mut_ptr())? };
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    let ds = unsafe { ds.assume_init() };
    Ok(Segment {
        owner: ds.shm_perm.uid,
        creator: ds.shm_perm.cuid,
        mode: ds.shm_perm.mode.into(),
        size: ds.shm_segsz,
        attached: ds.shm_nattch,
    })
}

/// Destroys the segment once the last mapping is gone. shmctl(2) with `IPC_RMID`.
///
/// # Errors
/// `EPERM` when it is another user's.
pub fn remove(id: i32) -> Result<(), Errno> {
    // SAFETY: no memory of ours is at stake; mappings stay until they are detached.
    unsafe { call!(libc::SYS_shmctl, id, libc::IPC_RMID, 0) }.map(drop)
}
