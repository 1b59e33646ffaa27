//! System V shared memory: a segment has no descriptor, no path and a size that nobody can
//! change, which is just what a guest in other programs needs. shmget(2), shmat(2), shmctl(2).

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
    /// When a process last let go, seconds since 1970; 0 for never.
    pub detached_at: i64,
}

/// The segment of this key. shmget(2).
///
/// # Errors
/// `ENOENT` when there is none, `EACCES` when it is somebody else's.
pub fn find(key: i32, size: usize) -> Result<i32, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_shmget, key, size, 0o600) }.map(|id| id as i32)
}

/// Creates a segment that only this user may attach. shmget(2) with `IPC_CREAT | IPC_EXCL`.
///
/// # Errors
/// `EEXIST` when the key is taken, `ENOSPC` at the system's limit, `ENOSYS` without System V IPC.
pub fn create(key: i32, size: usize) -> Result<i32, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_shmget, key, size, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) }
        .map(|id| id as i32)
}

/// Maps the segment. shmat(2).
///
/// # Errors
/// `EINVAL` when it is gone, `EACCES` when it is somebody else's.
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
    // SAFETY: the caller vouches that nobody uses the mapping.
    let _ = unsafe { call!(libc::SYS_shmdt, start.as_ptr()) };
}

/// Takes the pages of a mapped segment out of this process's memory; they stay in the segment, and come back
/// when they are touched. madvise(2), `MADV_DONTNEED`.
///
/// # Safety
/// All of the range is of one segment: private memory would be lost.
pub unsafe fn let_pages_go(start: NonNull<u8>, length: usize) {
    // SAFETY: the caller vouches that the memory is shared, whose content this does not change.
    let _ = unsafe { call!(libc::SYS_madvise, start.as_ptr(), length, libc::MADV_DONTNEED) };
}

/// What the kernel knows of it. shmctl(2) with `IPC_STAT`.
///
/// # Errors
/// `EINVAL` when it is gone, `EACCES` when it is somebody else's.
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
        detached_at: ds.shm_dtime,
    })
}

/// Destroys the segment once the last mapping is gone. shmctl(2) with `IPC_RMID`.
///
/// # Errors
/// `EPERM` when it is somebody else's.
pub fn remove(id: i32) -> Result<(), Errno> {
    // SAFETY: no memory of ours is at stake; mappings stay until they are detached.
    unsafe { call!(libc::SYS_shmctl, id, libc::IPC_RMID, 0) }.map(drop)
}
