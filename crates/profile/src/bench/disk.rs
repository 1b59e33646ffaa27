//! Cache hit and miss, seek and sequential read of the device below a folder.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use discnice_graybox::toolbox::{Timer, median_of};
use rustix::fs::{Advice, OFlags};

use super::{Place, figure};
use crate::store::{Figure, FigureName, Unit};

/// Size of the file that is read. Seeks are within it: short ones.
const FILE: u64 = 64 << 20;
/// What is read in one go in a row.
const CHUNK: usize = 1 << 20;
const PAGE: usize = 4096;

/// Hit, miss, seek and sequential read, in at most the time given and that of writing the file.
pub fn measure(dir: &Path, place: &Place, at_most: Duration) -> io::Result<Vec<Figure>> {
    let file = file_to_read(dir)?;
    let part = at_most / 8;
    let hits = hits(&file, part)?;
    let misses = misses(&file, part)?;
    let direct = direct(&file).unwrap_or(file);
    let rates = sequential(&direct, part * 3)?;
    // Time of moving alone: a page's own transfer taken off.
    let transfer = median_of(&rates).map_or(0.0, |rate| PAGE as f64 / rate * 1e9);
    let seeks = seeks(&direct, part)?.into_iter().map(|nanos| (nanos - transfer).max(0.0));
    let (nanos, rate) = (Unit::Nanoseconds, Unit::BytesPerSecond);
    let figures = [
        figure(FigureName::CacheHit, nanos, hits, Some(place)),
        figure(FigureName::CacheMiss, nanos, misses, Some(place)),
        figure(FigureName::Seek, nanos, seeks.collect(), Some(place)),
        figure(FigureName::SequentialRead, rate, rates, Some(place)),
    ];
    Ok(figures.into_iter().flatten().collect())
}

/// Cache hits alone, of a file system that is nothing but cache.
pub fn measure_hits(dir: &Path, place: &Place) -> io::Result<Vec<Figure>> {
    let mut file = tempfile::tempfile_in(dir)?;
    file.write_all(&[1; PAGE])?;
    let hits = hits(&file, Duration::from_secs(1))?;
    Ok(figure(FigureName::CacheHit, Unit::Nanoseconds, hits, Some(place)).into_iter().collect())
}

/// A nameless file of random bytes, on the disk and not in the cache.
fn file_to_read(dir: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(dir)?;
    let mut random = fastrand::Rng::new();
    let mut chunk = vec![0; CHUNK];
    for _ in 0..FILE / CHUNK as u64 {
        random.fill(&mut chunk);
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// The same file past the page cache, where the file system can.
fn direct(file: &File) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let direct = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let mut memory = Aligned::new(PAGE);
    direct.read_exact_at(memory.slice(), 0)?;
    Ok(direct)
}

/// Memory on a page boundary, as O_DIRECT wants it.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        Self { bytes, start, length }
    }

    fn slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

fn timed_read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<f64> {
    let timer = Timer::start();
    file.read_exact_at(buffer, offset)?;
    Ok(timer.elapsed().0 as f64)
}

fn random_page() -> u64 {
    fastrand::u64(0..FILE / PAGE as u64) * PAGE as u64
}

/// Nanoseconds of cached pages, in means of 1000.
fn hits(file: &File, at_most: Duration) -> io::Result<Vec<f64>> {
    let (clock, mut samples, mut page) = (Instant::now(), Vec::new(), [0; PAGE]);
    file.read_exact_at(&mut page, 0)?;
    while samples.len() < 31 && clock.elapsed() < at_most {
        let mut sum = 0.0;
        for _ in 0..1000 {
            sum += timed_read(file, &mut page, 0)?;
        }
        samples.push(sum / 1000.0);
    }
    Ok(samples)
}

/// Nanoseconds of pages that are not cached.
fn misses(file: &File, at_most: Duration) -> io::Result<Vec<f64>> {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
    rustix::fs::fadvise(file, 0, None, Advice::Random)?;
    let (clock, mut samples, mut page) = (Instant::now(), Vec::new(), [0; PAGE]);
    while samples.len() < 300 && clock.elapsed() < at_most {
        samples.push(timed_read(file, &mut page, random_page())?);
    }
    rustix::fs::fadvise(file, 0, None, Advice::Normal)?;
    Ok(samples)
}

/// Bytes per second, one sample a pass over the file or a tenth of the time.
fn sequential(file: &File, at_most: Duration) -> io::Result<Vec<f64>> {
    let (clock, mut samples, mut memory) = (Instant::now(), Vec::new(), Aligned::new(CHUNK));
    while samples.len() < 9 && clock.elapsed() < at_most {
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
        let (pass, mut at) = (Instant::now(), 0);
        while at < FILE && pass.elapsed() < at_most / 9 {
            file.read_exact_at(memory.slice(), at)?;
            at += CHUNK as u64;
        }
        samples.push(at as f64 / pass.elapsed().as_secs_f64());
    }
    Ok(samples)
}

/// Nanoseconds of reading pages at random places of the disk.
fn seeks(file: &File, at_most: Duration) -> io::Result<Vec<f64>> {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
    let (clock, mut samples, mut memory) = (Instant::now(), Vec::new(), Aligned::new(PAGE));
    while samples.len() < 300 && clock.elapsed() < at_most {
        samples.push(timed_read(file, memory.slice(), random_page())?);
    }
    Ok(samples)
}
