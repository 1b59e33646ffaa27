//! Wakes the watcher when a member announces itself on the board.
//!
//! A member that is about to execute a program that our library does not enter waits until the watcher knows of it.
//! A thread waits for that on the board's word: it lies in shared memory, so no descriptor, path or signal has to reach
//! from the member's namespaces into ours.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use discnice_ledger::Board;
use discnice_processes::fork;

/// What can be read when a member has announced itself.
#[derive(Debug)]
pub struct Announced {
    told: UnixStream,
}

impl Announced {
    /// Begins to listen to the board, for as long as this process lives.
    ///
    /// # Errors
    /// Descriptors are short, or no thread can be had: then announcements are found at the next look.
    pub fn on(board: &'static Board) -> io::Result<Self> {
        let (told, tell) = UnixStream::pair()?;
        told.set_nonblocking(true)?;
        fork::relay(board.announcements(), tell)?;
        Ok(Self { told })
    }

    /// Can be read when a member has announced itself since [`Announced::take`].
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }

    /// Takes note of what can be read.
    pub fn take(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.told.read(&mut bytes), Ok(64)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::block::BlockId;
    use discnice_sys::futex;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[allow(unsafe_code, reason = "a board lives in raw memory")]
    fn board() -> &'static Board {
        let start = discnice_sys::memory::allocate(Board::SIZE).unwrap();
        // SAFETY: the memory is fresh, zeroed, of that size, and never freed.
        unsafe { Board::create(start, Board::SIZE) }.unwrap()
    }

    fn is_told(announced: &Announced, milliseconds: i64) -> bool {
        let fd = announced.descriptor();
        let timeout = Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)).unwrap() > 0
    }

    #[test]
    fn an_announcement_is_told_until_it_is_taken() {
        let board = board();
        let mut announced = Announced::on(board).unwrap();
        assert!(!is_told(&announced, 20), "nothing is announced");
        for block in [3, 4] {
            board.announce(BlockId::of_segment(block));
            futex::wake_all(board.announcements());
            assert!(is_told(&announced, 900));
            assert!(board.take_arrivals().may_be_in(BlockId::of_segment(block)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            announced.take();
            assert!(!is_told(&announced, 20), "all is taken");
        }
    }
}
