//! What the kernel's account and its answers about the cache are worth on a file system: tried
//! out, not looked up in a list.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use discnice_sys::process::thread_usage;
use rustix::fs::Advice;

use super::figures::{Place, now};
use super::overhead;
use crate::pagecache::{cachestat, mincore, page_size};
use crate::profile::store::Trust;

const BYTES: u64 = 1 << 20;

pub fn measure(dir: &Path, place: &Place, asked_to_end: &AtomicBool) -> io::Result<Trust> {
    let file = tempfile::tempfile_in(dir)?;
    let contents = vec![0x5A; BYTES as usize];
    let writes_frac = charged(|| file.write_all_at(&contents, 0))?.written;
    let rewrites_frac = charged(|| file.write_all_at(&contents, 0))?.written;
    file.sync_all()?;
    let fd = file.as_raw_fd();
    let all = BYTES / page_size();
    let cachestat_counts = cachestat(fd, 0, BYTES).is_ok_and(|counts| counts.cached == all);
    let mincore_counts = resident(&file) == Some(all);
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    let left = resident(&file).unwrap_or(0);
    let mut buffer = contents;
    let read = charged(|| file.read_exact_at(&mut buffer, 0))?.read;
    let overhead = overhead::measure(dir, asked_to_end).ok().flatten();
    Ok(Trust {
        file_overhead_bytes: overhead.map(|found| found.beside_data),
        file_uncharged_bytes: overhead.map(|found| found.beside_account),
        tiny_file_overhead_bytes: overhead.map(|found| found.tiny_beside_data),
        transaction_bytes: overhead.map(|found| found.once),
        device: place.device.clone(),
        file_system: place.file_system.clone(),
        reads_frac: (left < all).then(|| read * all as f64 / (all - left) as f64),
        writes_frac,
        rewrites_frac,
        cachestat: cachestat_counts,
        mincore: mincore_counts,
        date: now(),
    })
}

/// Bytes charged for each of `BYTES`.
struct Charged {
    read: f64,
    written: f64,
}

fn charged(work: impl FnOnce() -> io::Result<()>) -> io::Result<Charged> {
    let before = thread_usage();
    work()?;
    let after = thread_usage();
    let frac = |before: u64, after: u64| after.saturating_sub(before) as f64 / BYTES as f64;
    Ok(Charged {
        read: frac(before.read, after.read),
        written: frac(before.written, after.written),
    })
}

fn resident(file: &File) -> Option<u64> {
    let mut pages = 0;
    mincore(file.as_raw_fd(), 0, BYTES, |_, yes| pages += u64::from(yes)).ok()?;
    Some(pages)
}
