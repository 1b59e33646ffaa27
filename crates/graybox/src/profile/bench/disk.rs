//! Cache hit and miss, seek and sequential read of the device below a folder.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, OFlags};

use super::figures::{Place, figure};
use crate::profile::store::{Figure, FigureName, FigureUnit};
use crate::toolbox::{Timer, median_of};

/// Size of the file that is read. Seeks are within it: short ones.
const FILE: u64 = 64 << 20;
/// What is read in one go in a row.
const CHUNK: usize = 1 << 20;
const PAGE: usize = 4096;

/// Samples in a round.
const HITS: usize = 5;
const MISSES: usize = 40;
const PASSES: usize = 2;
const SEEKS: usize = 40;

/// A file on the disk, and what has been seen of it so far.
pub struct Disk {
    file: File,
    /// The file, opened to bypass the page cache; none where the file system cannot.
    direct: Option<File>,
    hits: Vec<f64>,
    misses: Vec<f64>,
    rates: Vec<f64>,
    seeks: Vec<f64>,
}

impl Disk {
    pub fn new(dir: &Path) -> io::Result<Self> {
        let file = file_to_read(dir)?;
        let direct = direct(&file).ok();
        let [hits, misses, rates, seeks] = [const { Vec::new() }; 4];
        Ok(Self { file, direct, hits, misses, rates, seeks })
    }

    /// One round, in at most the time given.
    pub fn sample(&mut self, at_most: Duration) -> io::Result<()> {
        let part = at_most / 8;
        self.hits.extend(hits(&self.file, part)?);
        self.misses.extend(misses(&self.file, part)?);
        let file = self.direct.as_ref().unwrap_or(&self.file);
        self.rates.extend(sequential(file, part * 3)?);
        self.seeks.extend(reads_elsewhere(file, part)?);
        Ok(())
    }

    /// Hit, miss, seek and sequential read.
    pub fn figures(mut self, place: &Place) -> Vec<Figure> {
        // Time of moving alone: a page's own transfer taken off.
        let transfer = median_of(&self.rates).map_or(0.0, |rate| PAGE as f64 / rate * 1e9);
        self.seeks.iter_mut().for_each(|nanos| *nanos = (*nanos - transfer).max(0.0));
        let (nanos, rate) = (FigureUnit::Nanoseconds, FigureUnit::BytesPerSecond);
        let figures = [
            figure(FigureName::CacheHit, nanos, self.hits, Some(place)),
            figure(FigureName::CacheMiss, nanos, self.misses, Some(place)),
            figure(FigureName::Seek, nanos, self.seeks, Some(place)),
            figure(FigureName::SequentialRead, rate, self.rates, Some(place)),
        ];
        figures.into_iter().flatten().collect()
    }
}

/// A file of one page on a file system that is nothing but cache, so that there are hits only.
pub struct Memory {
    file: File,
    hits: Vec<f64>,
}

impl Memory {
    pub fn new(dir: &Path) -> io::Result<Self> {
        let mut file = tempfile::tempfile_in(dir)?;
        file.write_all(&[1; PAGE])?;
        Ok(Self { file, hits: Vec::new() })
    }

    /// One round.
    pub fn sample(&mut self) -> io::Result<()> {
        self.hits.extend(hits(&self.file, Duration::from_secs(1))?);
        Ok(())
    }

    pub fn figures(self, place: &Place) -> Vec<Figure> {
        let hits = figure(FigureName::CacheHit, FigureUnit::Nanoseconds, self.hits, Some(place));
        hits.into_iter().collect()
    }
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

/// Opens the file again to bypass the page cache, where the file system can.
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
    while samples.len() < HITS && clock.elapsed() < at_most {
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
    while samples.len() < MISSES && clock.elapsed() < at_most {
        samples.push(timed_read(file, &mut page, random_page())?);
    }
    rustix::fs::fadvise(file, 0, None, Advice::Normal)?;
    Ok(samples)
}

/// Bytes per second, one sample a pass over the file or its part of the time.
fn sequential(file: &File, at_most: Duration) -> io::Result<Vec<f64>> {
    let (clock, mut samples, mut memory) = (Instant::now(), Vec::new(), Aligned::new(CHUNK));
    while samples.len() < PASSES && clock.elapsed() < at_most {
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
        let (pass, mut at) = (Instant::now(), 0);
        while at < FILE && pass.elapsed() < at_most / PASSES as u32 {
            file.read_exact_at(memory.slice(), at)?;
            at += CHUNK as u64;
        }
        samples.push(at as f64 / pass.elapsed().as_secs_f64());
    }
    Ok(samples)
}

/// Nanoseconds of reading pages at random places of the disk.
fn reads_elsewhere(file: &File, at_most: Duration) -> io::Result<Vec<f64>> {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
    let (clock, mut samples, mut memory) = (Instant::now(), Vec::new(), Aligned::new(PAGE));
    while samples.len() < SEEKS && clock.elapsed() < at_most {
        samples.push(timed_read(file, memory.slice(), random_page())?);
    }
    Ok(samples)
}
