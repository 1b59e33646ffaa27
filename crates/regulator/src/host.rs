//! The mechanism: what a regulator needs of the system it runs on.

use discnice_estimator::System;
use discnice_ledger::board::{Moved, Work};
use discnice_ledger::member::Charged;
use discnice_ledger::passed::Decider;
use discnice_ledger::primitive::AtomicU32;
use discnice_units::{Moment, Nanos};

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The deadline has come.
    Due,
    /// The limits changed.
    Changed,
    /// A signal handler ran.
    Interrupted,
    /// The waiting process is gone, or must not be held any longer; its debt remains.
    Abandoned,
}

/// How a file will be used, as posix_fadvise(2) takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The kernel's own read-ahead.
    Normal,
    /// The kernel's own read-ahead, twice as long.
    Sequential,
    /// No read-ahead by the kernel: exactly what is asked is read.
    Random,
}

/// What a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatus {
    /// True if I/O on it can reach a disk (regular file, directory, block device).
    pub disk: bool,
    /// True for a regular file.
    pub regular: bool,
    /// True for a socket.
    pub socket: bool,
    /// Its size in bytes.
    pub size: u64,
    /// Device number of its file system, as stat(2) encodes it.
    pub device: u64,
    /// Its number in the file system.
    pub inode: u64,
    /// Bytes that are allocated for it.
    pub allocated: u64,
}

/// How writes on a descriptor reach the file. open(2)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteMode {
    /// At its end, wherever the descriptor's offset is.
    pub append: bool,
    /// Past the page cache.
    pub direct: bool,
    /// To the disk before the call returns.
    pub synchronous: bool,
}

/// What one disk or partition has moved since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskTraffic {
    /// Its number.
    pub id: u64,
    /// True for a whole disk that is not composed of other disks.
    pub physical: bool,
    /// Bytes read and written by all processes together.
    pub moved: Moved,
    /// What it had to do.
    pub work: Work,
}

/// What the interfaces of one network namespace have moved since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkTraffic {
    /// Its number; namespaces(7).
    pub namespace: u64,
    /// Bytes received and sent, headers left out ([`discnice_ledger::policy::throttle::payload`]).
    pub moved: Moved,
}

//= discnice/4.1-modules
/// The contract of a mechanism:
///
/// 1. no method changes what the program can see: its errno, its file offsets, its data;
/// 2. a method that cannot do its work does nothing and says so by `None`, never by failing;
/// 3. every method may be called in a signal handler, and between fork and exec;
/// 4. only [`Host::wait`] sleeps, and those that await the disk;
/// 5. descriptors are claims: each may be closed or mean another file at any moment.
pub trait Host: System {
    /// What it is that decides about calls by this host.
    const BY: Decider = Decider::Library;

    /// The time, of a clock that stands still while the machine sleeps.
    fn now(&self) -> Moment;
    /// The kernel's account of this process: bytes read and written since it was born.
    fn account(&self) -> Charged;
    /// Page faults of this process that had to read, since it was born; zero where that is not told.
    fn major_faults(&self) -> u64 {
        0
    }
    /// How often the calling thread gave up the processor to wait, and how often it lost it otherwise;
    /// zero where that is not told.
    fn switches(&self) -> (u64, u64) {
        (0, 0)
    }
    /// Bytes that the calling thread alone has read from disks.
    fn read_by_thread(&self) -> u64;
    /// Bytes of the calling thread's writes that the kernel dropped so far, because the file was truncated or
    /// deleted before they were written. Expensive; `None` where the kernel does not tell.
    fn cancelled(&self) -> Option<u64>;
    /// Sleeps until `until` or until `word` is no longer `seen`.
    fn wait(&self, word: &AtomicU32, seen: u32, until: Moment) -> Woken;
    /// Returns true if nothing waits for the call any more: what is read ahead for it is read for nothing.
    fn is_abandoned(&self) -> bool {
        false
    }
    /// What the descriptor is.
    fn status(&self, fd: i32) -> Option<FileStatus>;
    /// Bytes of a range that are no hole; `None` where the file system does not tell.
    fn data(&self, _fd: i32, _offset: u64, _length: u64) -> Option<u64> {
        None
    }
    /// Returns true if the byte at `offset` lies in blocks shared with another file; `None` if the
    /// file system does not tell.
    fn is_shared(&self, _fd: i32, _offset: u64) -> Option<bool> {
        None
    }
    /// Returns true if the file lies on a file system without a disk (tmpfs).
    fn is_in_memory(&self, _fd: i32) -> bool {
        false
    }
    /// For how long a file of a file system that copies files when they are opened to be written (overlayfs)
    /// has been there that is; `None` of others.
    fn age_of_copy(&self, _fd: i32) -> Option<Nanos> {
        None
    }
    /// The descriptor's offset.
    fn position(&self, fd: i32) -> Option<u64>;
    /// How the descriptor writes.
    fn write_mode(&self, fd: i32) -> Option<WriteMode>;
    /// Returns true if the descriptor is open for writing.
    fn can_write(&self, _fd: i32) -> bool {
        true
    }
    /// Starts reading a range into the page cache.
    fn read_ahead(&self, fd: i32, offset: u64, length: u64);
    /// Waits until the page at `offset`, which is being read, has arrived.
    fn await_read(&self, fd: i32, offset: u64);
    /// Changes the kernel's read-ahead for a descriptor.
    fn advise(&self, fd: i32, advice: Advice);
    /// Starts writing a range's dirty pages.
    fn write_back(&self, fd: i32, offset: u64, length: u64);
    /// Writes all dirty pages of a file, where starting write-back has no effect (FUSE). Returns
    /// the error number of a failed write, which the caller must report to the program, since the
    /// kernel reports it only once. A host with no way to report it does nothing here.
    fn write_through(&self, _fd: i32) -> Option<u32> {
        None
    }
    /// Returns true if the thread waits now, before its next call: then what its last call dirtied
    /// can be written back in pieces.
    fn is_between_calls(&self) -> bool {
        false
    }
    /// Waits until no more than `left` bytes of a range, its offset and length, are on their way to the disk, for a moment at most.
    fn await_written(&self, fd: i32, range: (u64, u64), left: u64);
    /// Drops what the page cache holds of a range and need not be written.
    fn drop_cached(&self, fd: i32, offset: u64, length: u64);
    /// Returns true if the kernel says that nothing of this inode is cached.
    fn is_uncached(&self, _fd: i32) -> bool {
        false
    }
    /// Returns true if its file system is stacked on another one, where another inode caches it.
    fn is_stacked(&self, _fd: i32) -> bool {
        false
    }
    /// Wakes all threads that wait on `word`.
    fn wake_all(&self, word: &AtomicU32);
    /// Calls `each` with the traffic of every disk; returns true if the system provides it.
    fn disks(&self, _each: impl FnMut(DiskTraffic)) -> bool {
        false
    }
    /// Returns the traffic of the network interfaces, of all processes together.
    fn network(&self) -> Option<NetworkTraffic> {
        None
    }
    /// For how long at least one task has stalled on I/O since the machine started.
    fn stalled(&self) -> Option<Nanos> {
        None
    }
    /// How many bytes of the machine's page cache are to be written, or being written.
    fn unwritten(&self) -> Option<u64> {
        None
    }
    /// The disk of a file system ([`FileStatus::device`]), if it has one of its own.
    fn disk_of(&self, _device: u64) -> Option<u64> {
        None
    }
}
