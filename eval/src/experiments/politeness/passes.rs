//! Lets a background begin each pass with nothing in the page cache, which only root can empty: its shell asks
//! before each pass, through a pipe with a name, and waits for the answer.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::path::Path;
use std::thread::JoinHandle;

use anyhow::Context;
use rustix::fs::{CWD, FileType, Mode};

use crate::disk::Owner;
use crate::removal::unless_missing;

/// What a shell runs before a pass; `$M` is the folder of the pipes.
pub const ASK: &str = "echo >\"$M\"/ask && read _ <\"$M\"/answer";
const END: u8 = b'e';

/// Answers a background until it is dropped.
pub struct Passes {
    ask: File,
    thread: Option<JoinHandle<()>>,
}

impl Passes {
    /// Makes the pipes anew in `folder`, for `owner`, and begins to answer.
    ///
    /// # Errors
    /// A pipe or the thread cannot be made.
    pub fn start(folder: &Path, owner: Owner) -> anyhow::Result<Self> {
        let (mut asked, mut answers) =
            (pipe(folder, "ask", owner)?, pipe(folder, "answer", owner)?);
        let ask = asked.try_clone()?;
        let answer = move || {
            let mut byte = [0];
            while asked.read_exact(&mut byte).is_ok() && byte[0] != END {
                // A pass that begins with a full cache is seen in what the device moves.
                let _ = fs::write("/proc/sys/vm/drop_caches", "3");
                if answers.write_all(b"\n").is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("passes".into()).spawn(answer);
        Ok(Self { ask, thread: Some(thread.context("cannot start a thread")?) })
    }
}

impl Drop for Passes {
    fn drop(&mut self) {
        // If the pipe cannot be written, the thread has no end to wait for.
        if self.ask.write_all(&[END]).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It ended by itself, or panicked and said so.
            let _ = thread.join();
        }
    }
}

/// A pipe with a name, open at both ends, so that neither side waits for the other to open it.
fn pipe(folder: &Path, name: &str, owner: Owner) -> anyhow::Result<File> {
    let path = folder.join(name);
    let context = || format!("cannot make a pipe {}", path.display());
    unless_missing(fs::remove_file(&path), &path)?;
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .with_context(context)?;
    chown(&path, Some(owner.uid), Some(owner.gid)).with_context(context)?;
    OpenOptions::new().read(true).write(true).open(&path).with_context(context)
}
