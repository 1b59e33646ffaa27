//! The disk while it runs: its memory, its model, and the thread that answers in time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use discnice_units::{Moment, Nanos};
use fuser::{ReplyData, ReplyEmpty, ReplyWrite};
use rustix::fs::MemfdFlags;
use rustix::thread::ClockId;

use super::model::{Counters, Model, Operation};
use super::profile::Profile;

/// An answer that is ready and waits for its moment.
pub enum Answer {
    /// Data of a read.
    Read(ReplyData, Vec<u8>),
    /// Length of a write.
    Written(ReplyWrite, u32),
    /// A flush or a discard.
    Done(ReplyEmpty),
}

/// An answer and the moment it is due.
pub struct Job {
    /// Moment of `CLOCK_MONOTONIC`.
    pub due: Moment,
    /// What to send then.
    pub answer: Answer,
}

/// Memory and model of the disk.
pub struct Disk {
    /// Sparse image in memory.
    pub image: File,
    /// Bytes.
    pub size: u64,
    model: Mutex<Model>,
    paced: AtomicBool,
}

impl Disk {
    /// An empty disk of `size` bytes; it answers at once until [`Disk::pace`] is called.
    ///
    /// # Errors
    /// The kernel gives no memory file.
    pub fn new(profile: Profile, size: u64) -> anyhow::Result<Self> {
        let memory = rustix::fs::memfd_create("discnice-eval-disk", MemfdFlags::CLOEXEC)
            .context("cannot create a file in memory")?;
        let image = File::from(memory);
        image.set_len(size).context("cannot size the image")?;
        let model = Mutex::new(Model::new(profile, size));
        Ok(Self { image, size, model, paced: AtomicBool::new(false) })
    }

    /// Whether to answer in the emulated disk's time (`true`) or at once, to prepare files quickly.
    pub fn pace(&self, paced: bool) {
        self.model().forget_buffer();
        self.paced.store(paced, Ordering::Relaxed);
    }

    /// What the model has counted; requests that are answered at once are not.
    pub fn counters(&self) -> Counters {
        self.model().counters()
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        Moment(now.tv_sec as u64 * Nanos::SECOND.0 + now.tv_nsec as u64)
    }

    /// When a request that arrives now is to be answered.
    pub fn due(&self, operation: Operation, offset: u64, length: u64) -> Moment {
        let now = self.now();
        if !self.paced.load(Ordering::Relaxed) {
            return now;
        }
        self.model().accept(now, operation, offset, length)
    }

    /// When everything accepted so far is on the platter.
    pub fn flushed_at(&self) -> Moment {
        if self.paced.load(Ordering::Relaxed) { self.model().idle_at() } else { self.now() }
    }

    /// Copies out of the image.
    ///
    /// # Errors
    /// As pread(2) on a file in memory.
    pub fn read(&self, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
        let mut data = vec![0; length];
        self.image.read_exact_at(&mut data, offset)?;
        Ok(data)
    }

    /// Copies into the image.
    ///
    /// # Errors
    /// As pwrite(2) on a file in memory: no memory left, above all.
    pub fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.image.write_all_at(data, offset)
    }

    fn model(&self) -> std::sync::MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends each answer at its moment, in order; returns when the file system is gone.
pub fn answer_in_time(jobs: &Receiver<Job>) {
    // The default slack of 50 us would be added to every answer. Refused, it only costs precision.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    for job in jobs {
        sleep_until(job.due);
        match job.answer {
            Answer::Read(reply, data) => reply.data(&data),
            Answer::Written(reply, length) => reply.written(length),
            Answer::Done(reply) => reply.ok(),
        }
    }
}

fn sleep_until(moment: Moment) {
    let until = rustix::time::Timespec {
        tv_sec: (moment.0 / Nanos::SECOND.0) as i64,
        tv_nsec: (moment.0 % Nanos::SECOND.0) as _,
    };
    while let Err(rustix::io::Errno::INTR) =
        rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until)
    {}
}
