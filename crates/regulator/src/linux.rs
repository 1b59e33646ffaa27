//! The mechanism inside a program: system calls that the program does not notice.

use discnice_estimator::{Counts, Probed, Refusal, System};
use discnice_ledger::board::{Moved, Work};
use discnice_ledger::member::Charged;
use discnice_ledger::policy::throttle;
use discnice_ledger::primitive::AtomicU32;
use discnice_sys::pressure::{self, PressureResource};
use discnice_sys::traffic::{self, TrafficCounters};
use discnice_sys::{Errno, extents, file, futex, pagecache, process, residency, time};
use discnice_units::{Moment, Nanos};

use crate::host::{Advice, DiskTraffic, FileStatus, Host, NetworkTraffic, Woken, WriteMode};

/// readahead(2) reads at most one read-ahead window of the device, or its largest request, for each
/// call; this is the smallest in use, the kernel's default window.
const WINDOW: u64 = 128 << 10;
/// Most disks take requests of this size. What is asked for in one call reaches the disk in one.
const REQUEST: u64 = 512 << 10;

/// The page size of the cache.
const PAGE: u64 = 4096;
/// How often to look whether something has been written, and for how long at most.
const WRITE_LOOK: Nanos = Nanos::from_millis(2);
const TO_THE_END: u64 = i64::MAX as u64;
const LONGEST_WRITE: Nanos = Nanos::from_millis(250);

/// Linux.
#[derive(Debug)]
pub struct Linux;

impl Host for Linux {
    fn now(&self) -> Moment {
        time::now()
    }

    fn account(&self) -> Charged {
        let usage = process::usage();
        Charged { read: usage.read, written: usage.written }
    }

    fn major_faults(&self) -> u64 {
        process::major_faults_of_all()
    }

    fn switches(&self) -> (u64, u64) {
        process::waits_and_preemptions()
    }

    fn read_by_thread(&self) -> u64 {
        process::thread_usage().read
    }

    fn cancelled(&self) -> Option<u64> {
        let mut text = [0; 256];
        // The process's own file would count those of its dead children again.
        let length = file::read_small(c"/proc/thread-self/io", &mut text).ok()?;
        number_after(text.get(..length)?, b"cancelled_write_bytes: ")
    }

    fn wait(&self, word: &AtomicU32, seen: u32, until: Moment) -> Woken {
        match futex::wait(word, seen, until) {
            futex::WaitOutcome::Due => Woken::Due,
            futex::WaitOutcome::Changed => Woken::Changed,
            futex::WaitOutcome::Interrupted => Woken::Interrupted,
        }
    }

    fn status(&self, fd: i32) -> Option<FileStatus> {
        file::status(fd).ok().map(FileStatus::from)
    }

    fn data(&self, fd: i32, offset: u64, length: u64) -> Option<u64> {
        extents::data(fd, offset, length).ok()
    }

    fn is_shared(&self, fd: i32, offset: u64) -> Option<bool> {
        extents::is_shared(fd, offset).ok()
    }

    fn is_in_memory(&self, fd: i32) -> bool {
        file::is_in_memory(fd)
    }

    fn age_of_copy(&self, fd: i32) -> Option<Nanos> {
        if file::is_on_overlay(fd) { file::age(fd).ok() } else { None }
    }

    fn position(&self, fd: i32) -> Option<u64> {
        file::position(fd).ok()
    }

    fn write_mode(&self, fd: i32) -> Option<WriteMode> {
        let flags = file::flags(fd).ok()?;
        Some(WriteMode {
            append: flags & libc::O_APPEND != 0,
            direct: flags & libc::O_DIRECT != 0,
            synchronous: flags & libc::O_DSYNC != 0,
        })
    }

    fn can_write(&self, fd: i32) -> bool {
        file::flags(fd).is_ok_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
    }

    fn read_ahead(&self, fd: i32, offset: u64, length: u64) {
        let mut done = 0;
        while done < length {
            // What the last call has read already is only looked up.
            let piece = (length - done).min(REQUEST);
            if file::read_ahead(fd, offset.saturating_add(done), piece).is_err() {
                return;
            }
            done += piece.min(WINDOW);
        }
    }

    fn await_read(&self, fd: i32, offset: u64) {
        // Where it is refused, the program finds out by itself.
        let _ = file::await_read(fd, offset);
    }

    fn await_written(&self, fd: i32, (offset, length): (u64, u64), left: u64) {
        // sync_file_range(2) can wait, but takes away the error that the program's fsync(2) is to tell.
        let (nobody, mut now) = (AtomicU32::new(0), time::now());
        let (end, left) = (now.plus(LONGEST_WRITE), left / PAGE);
        // As sync_file_range(2) has it.
        let length = if length == 0 { TO_THE_END - offset } else { length };
        let is_more =
            || pagecache::cachestat(fd, offset, length).is_ok_and(|pages| pages.writeback > left);
        while now < end && is_more() {
            let _ = futex::wait(&nobody, 0, now.plus(WRITE_LOOK));
            now = time::now();
        }
    }

    fn advise(&self, fd: i32, advice: Advice) {
        let advice = match advice {
            Advice::Normal => libc::POSIX_FADV_NORMAL,
            Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
            Advice::Random => libc::POSIX_FADV_RANDOM,
        };
        // A descriptor that takes no advice has no read-ahead either.
        let _ = file::advise(fd, advice);
    }

    fn is_uncached(&self, fd: i32) -> bool {
        pagecache::cachestat(fd, 0, u64::MAX).is_ok_and(|pages| pages.cached == 0)
    }

    fn is_stacked(&self, fd: i32) -> bool {
        file::is_on_overlay(fd)
    }

    fn drop_cached(&self, fd: i32, offset: u64, length: u64) {
        let _ = file::advise_range(fd, offset, length, libc::POSIX_FADV_DONTNEED);
    }

    fn wake_all(&self, word: &AtomicU32) {
        futex::wake_all(word);
    }

    fn disks(&self, mut each: impl FnMut(DiskTraffic)) -> bool {
        let told = traffic::disks(|disk| {
            let (id, physical) = (disk.id, disk.is_physical());
            let traffic::Disk { busy, requests, waited, in_flight, .. } = disk;
            let work = Work { busy, requests, waited, in_flight, largest: 0 };
            each(DiskTraffic { id, physical, moved: moved(disk.moved), work });
        });
        told.is_ok()
    }

    fn network(&self) -> Option<NetworkTraffic> {
        let traffic::Interfaces { bytes, packets, namespace } = traffic::network().ok()?;
        let moved = Moved {
            inward: throttle::payload(bytes.inward, packets.inward),
            outward: throttle::payload(bytes.outward, packets.outward),
        };
        Some(NetworkTraffic { namespace, moved })
    }

    fn stalled(&self) -> Option<Nanos> {
        pressure::of(PressureResource::Io).map(|io| io.total)
    }

    fn unwritten(&self) -> Option<u64> {
        traffic::unwritten()
    }

    fn disk_of(&self, device: u64) -> Option<u64> {
        traffic::disk_of(device)
    }

    fn write_back(&self, fd: i32, offset: u64, length: u64) {
        // Where it is refused, the kernel's own write-back does the work, later.
        let _ = file::start_write_back(fd, offset, length);
    }

    fn write_through(&self, fd: i32) -> Option<u32> {
        let Errno(error) = file::write_through(fd).err()?;
        let by_disk = matches!(error, libc::EIO | libc::ENOSPC | libc::EDQUOT);
        u32::try_from(error).ok().filter(|_| by_disk)
    }
}

const fn moved(TrafficCounters { inward, outward }: TrafficCounters) -> Moved {
    Moved { inward, outward }
}

impl System for Linux {
    fn count(&self, fd: i32, offset: u64, length: u64) -> Result<Counts, Refusal> {
        match pagecache::cachestat(fd, offset, length) {
            Ok(counts) => Ok(Counts { cached: counts.cached, dirty: counts.dirty }),
            Err(Errno::PERM) => Err(Refusal::Foreign),
            Err(_) => Err(Refusal::Unsupported),
        }
    }

    fn resident(&self, fd: i32, offset: u64, length: u64) -> Option<u64> {
        // A process with write access gets reliable answers as well, but rarely owns none of what
        // it may write.
        let honest = file::status(fd).is_ok_and(|status| status.owner == process::user());
        if honest { residency::resident(fd, offset, length).ok() } else { None }
    }

    fn probe(&self, fd: i32, offset: u64, length: u64) -> Option<Probed> {
        let touched = residency::touch(fd, offset, length).ok()?;
        Some(Probed { cached: touched.cached, read: touched.read })
    }
}

impl From<file::Status> for FileStatus {
    fn from(status: file::Status) -> Self {
        Self {
            disk: status.kind == file::FileKind::Disk,
            regular: status.regular,
            socket: status.kind == file::FileKind::Socket,
            size: status.size,
            device: status.device,
            inode: status.inode,
            allocated: status.allocated,
        }
    }
}

/// The decimal number behind `label` in a file of /proc.
fn number_after(text: &[u8], label: &[u8]) -> Option<u64> {
    let at = text.windows(label.len()).position(|window| window == label)?;
    let digits = text.get(at + label.len()..)?.iter().take_while(|byte| byte.is_ascii_digit());
    Some(
        digits.fold(0u64, |number, digit| {
            number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
        }),
    )
}
