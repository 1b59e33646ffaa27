//! Files that are on the disk and not in the page cache.

#![allow(
    unsafe_code,
    reason = "posix_fadvise(3) and cachestat(2) have no safe wrapper in the standard library"
)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for which the kernel is asked again to drop pages: it drops none that is in use just then,
/// such as by a processor's list of new pages.
const PATIENCE: Duration = Duration::from_secs(2);
/// The number of cachestat(2), the same on all architectures.
const CACHESTAT: libc::c_long = 451;

/// Makes a file of `size` bytes that do not compress, written to the disk and dropped from the
/// cache.
///
/// # Errors
/// The file system's.
pub fn make(path: &Path, size: usize) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ size as u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_ne_bytes());
    }
    bytes.truncate(size);
    File::create(path)?.write_all(&bytes)?;
    drop_file(path)
}

/// Makes a file of numbered lines of text, as [`make`].
///
/// # Errors
/// The file system's.
pub fn make_text(path: &Path, lines: usize) -> io::Result<()> {
    let mut text = String::new();
    for line in 0..lines {
        let scattered = (line as u64).wrapping_mul(2_654_435_761) % 1_000_003;
        text.push_str(&format!("{scattered:07} line {line} of a text with words in it\n"));
    }
    fs::write(path, text)?;
    drop_file(path)
}

/// Writes a file, or all files below a folder, to the disk and drops them from the cache.
///
/// # Errors
/// The file system's.
pub fn drop_all(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| drop_all(&entry?.path()))
    } else if path.is_file() {
        drop_file(path)
    } else {
        Ok(())
    }
}

fn drop_file(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        // SAFETY: numbers only; the descriptor is open.
        match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
            0 if cached(&file) == 0 || Instant::now() > deadline => return Ok(()),
            0 => std::thread::sleep(Duration::from_millis(1)),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Bytes of a file that are dirty or being written back; `None` where the kernel does not tell.
#[must_use]
pub fn unwritten(path: &Path) -> Option<u64> {
    let [_, dirty, writeback, ..] = counts(&File::open(path).ok()?)?;
    Some((dirty + writeback) * 4096)
}

/// Bytes of a file that were read and that no program dropped from the cache since; `None` where the kernel does not tell.
///
/// They are in the cache, or the kernel evicted them to free memory: DAMON does so on some machines within seconds.
/// Pages that are dropped by posix_fadvise(2) do not count as evicted.
#[must_use]
pub fn kept(path: &Path) -> Option<u64> {
    let [cached, _, _, evicted, _] = counts(&File::open(path).ok()?)?;
    Some((cached + evicted) * 4096)
}

/// Pages of a file in the cache; 0 as well where the kernel does not tell.
fn cached(file: &File) -> u64 {
    counts(file).map_or(0, |[cached, ..]| cached)
}

/// What cachestat(2) counts of a file, in pages: cached, dirty, being written back, evicted, evicted lately.
fn counts(file: &File) -> Option<[u64; 5]> {
    /// `struct cachestat_range`: up to the end of the file.
    static ALL: [u64; 2] = [0, 0];
    let mut counts = [0_u64; 5];
    let (range, into) = (&raw const ALL, &raw mut counts);
    // SAFETY: the kernel reads the range and writes as many counts as `struct cachestat` has.
    let told = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range, into, 0) };
    (told == 0).then_some(counts)
}

/// Bytes written by this process and by children that it has waited for which never reached a disk,
/// because their file was deleted or truncated first; proc(5), `cancelled_write_bytes`.
#[must_use]
pub fn cancelled() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix("cancelled_write_bytes: "));
    value.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Bytes that all children of this process, that it has waited for, caused the disks to read and
/// write; getrusage(2) with `RUSAGE_CHILDREN`.
#[must_use]
pub fn children() -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure; zeroes are valid for it anyhow.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let bytes = |blocks: libc::c_long| u64::try_from(blocks).unwrap_or(0) * 512;
    (bytes(usage.ru_inblock), bytes(usage.ru_oublock))
}
