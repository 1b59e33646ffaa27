//! Ends chains of read-ahead windows, which advice does not end. Exists for `eval/benches/escapes.py`, row `child: copier static`, where the
//! highest 5 s had 1.8 times the limit without it.
//!
//! In each window one page is marked, and a read of that page starts the next window
//! (mm/readahead.c, `page_cache_async_ra`, which does not ask for `FMODE_RANDOM`). So the windows
//! that are being read and the next ones, which they have started, are dropped, and read again when
//! they are asked for.

use std::os::fd::{AsRawFd, OwnedFd};

use discnice_sys::{file, pagecache, procfs};

use crate::process::{self, Call};
use crate::tuning;

/// What the threads of a process that stands were doing.
pub(crate) fn calls_of(id: u32) -> Vec<Call> {
    if procfs::is_executing(id) {
        return Vec::new();
    }
    let call = |thread| process::call(id, thread);
    process::threads(id).take(tuning::read_ahead::THREADS).filter_map(call).collect()
}

/// Where the process reads on in the file that it knows as `number`: at its offset, which stays zero for pread(2), and
/// behind what its threads ask for at places of their own.
pub(crate) fn places(number: i32, borrowed: &OwnedFd, calls: &[Call]) -> Vec<u64> {
    let own = rustix::fs::tell(borrowed).ok().filter(|place| *place > 0);
    let read = |call: &Call| {
        let [fd, _, count, place, ..] = call.arguments;
        let is_here = u64::try_from(number) == Ok(fd);
        match call.number {
            libc::SYS_pread64 if is_here => Some(place.saturating_add(count)),
            // How long its pieces are only its memory tells.
            libc::SYS_preadv | libc::SYS_preadv2 if is_here => Some(place),
            _ => None,
        }
    };
    own.into_iter().chain(calls.iter().filter_map(read)).collect()
}

/// Drops what lies so far ahead of these places; no more than was read lately, as what others have in the cache is
/// theirs.
pub(crate) fn end(borrowed: &OwnedFd, places: &[u64], ahead: u64) {
    for place in places {
        let fd = borrowed.as_raw_fd();
        let _ = file::advise_range(fd, *place, ahead, libc::POSIX_FADV_DONTNEED);
    }
}

/// Drops all that is cached of the file, where positions are unknown (io_uring), if the process
/// itself can have read all of it, of `read` bytes.
pub(crate) fn drop_own(borrowed: &OwnedFd, read: u64) {
    let fd = borrowed.as_raw_fd();
    let cached = pagecache::cachestat(fd, 0, u64::MAX).map_or(u64::MAX, |counts| counts.cached);
    if cached.saturating_mul(pagecache::page_size()) <= read {
        let _ = file::advise(fd, libc::POSIX_FADV_DONTNEED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_requirements::skip;
    use std::io::Write;

    #[test]
    fn a_reader_by_pread_tells_where() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let borrowed = OwnedFd::from(file);
        let call = |number, fd| Call { number, arguments: [fd, 0, 4096, 65_536, 0, 0] };
        let calls = [
            call(libc::SYS_pread64, 7),
            call(libc::SYS_pread64, 8),
            call(libc::SYS_read, 7),
            call(libc::SYS_preadv2, 7),
        ];
        assert_eq!(places(7, &borrowed, &calls), [69_632, 65_536]);
        rustix::fs::seek(&borrowed, rustix::fs::SeekFrom::Start(9)).unwrap();
        assert_eq!(places(7, &borrowed, &[]), [9]);
    }

    #[test]
    fn what_others_may_have_read_is_not_dropped() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&[1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let borrowed = OwnedFd::from(file);
        let cached = || pagecache::cachestat(borrowed.as_raw_fd(), 0, u64::MAX).map(|c| c.cached);
        let Ok(all) = cached() else { skip!("no cachestat(2)") };
        drop_own(&borrowed, 1 << 19);
        assert_eq!(cached(), Ok(all));
        drop_own(&borrowed, 1 << 20);
        assert_eq!(cached(), Ok(0));
    }
}
