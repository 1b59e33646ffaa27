//! The calls that wait, in memory that both processes of a [`crate::pair`] share.
//!
//! The kernel writes a notification straight into its slot, and the slot is zeroed after the
//! answer. So the process that takes over after a `kill -9`, at whatever instruction, finds every
//! call that was received and may not have been answered; an answer that was given already is
//! refused (`ENOENT`) and does no harm.
#![allow(unsafe_code, reason = "memory that the kernel writes and another process reads")]

use std::io;
use std::ptr::NonNull;

use discnice_sys::Errno;
use discnice_sys::seccomp::{self, Notification};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Calls that can be held at a time; more wait until one is answered, as if just made.
pub const SLOTS: usize = 4096;

/// One slot to a pair of cache lines, as neighbouring ones are used by different threads.
#[repr(C, align(128))]
struct Slot(Notification);

/// The slots. Each is used by one thread at a time: by the one that receives into it, then by the
/// one that answers.
#[derive(Debug)]
pub struct Table {
    start: NonNull<Slot>,
}

// SAFETY: a slot is reached by its number, which has one owner at a time (see `Table`).
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Fresh slots, which children of this process share.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> io::Result<Self> {
        let length = SLOTS * size_of::<Slot>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing uses.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::SHARED)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start })
    }

    fn slot(&self, index: usize) -> *mut Notification {
        assert!(index < SLOTS);
        // SAFETY: the mapping has so many slots, and is never undone.
        unsafe { self.start.as_ptr().add(index).cast() }
    }

    /// Receives a call into an empty slot that the caller owns.
    ///
    /// # Errors
    /// Those of [`seccomp::receive`]; the slot is empty then.
    pub fn receive(&self, listener: i32, index: usize) -> Result<Notification, Errno> {
        let slot = self.slot(index);
        // SAFETY: the caller owns the slot, so this is the only reference.
        unsafe {
            match seccomp::receive(listener, &mut *slot) {
                Ok(()) => Ok(slot.read()),
                Err(errno) => {
                    slot.write(Notification::default());
                    Err(errno)
                }
            }
        }
    }

    /// What the slot holds, if it is not empty.
    pub fn get(&self, index: usize) -> Option<Notification> {
        // SAFETY: the caller owns the slot.
        let notification = unsafe { self.slot(index).read() };
        (notification.id != 0).then_some(notification)
    }

    /// Moves a call to an empty slot; both are the caller's. Between the two steps it is in both,
    /// and may be answered twice, which does no harm.
    pub fn put(&self, to: usize, from: usize) {
        // SAFETY: the caller owns both slots.
        unsafe {
            self.slot(to).write_volatile(self.slot(from).read());
            self.slot(from).write_volatile(Notification::default());
        }
    }

    /// Lets the slot's call be made, and empties the slot.
    pub fn answer(&self, listener: i32, index: usize, id: u64) {
        // It may have been killed meanwhile.
        let _ = seccomp::proceed(listener, id);
        // SAFETY: the caller owns the slot.
        unsafe { self.slot(index).write_volatile(Notification::default()) };
    }
}
