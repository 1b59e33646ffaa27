//! How the other commands speak with the process that serves the disk: one line of JSON each way
//! over a socket in the state directory.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::head::Disk;
use super::model::Counters;

/// How long the serving process may take to answer before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(2);

/// What one can ask of the serving process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// What the model has counted.
    Stats,
    /// Answer in the emulated disk's time.
    Pace,
    /// Answer at once, to prepare files.
    Hurry,
}

/// Asks the process behind `socket`; every answer carries the counters.
///
/// # Errors
/// There is no listener, or no answer within two seconds.
pub fn ask(socket: &Path, question: Ask) -> anyhow::Result<Counters> {
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("the disk at {} is not served", socket.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    serde_json::to_writer(&mut stream, &question)?;
    stream.write_all(b"\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("the disk's process does not answer")?;
    if line.is_empty() {
        bail!("the disk's process refused the question");
    }
    serde_json::from_str(&line).context("the disk's process answered nonsense")
}

/// Answers questions until the process ends.
pub fn answer_questions(listener: &UnixListener, disk: &Disk) {
    for stream in listener.incoming().flatten() {
        // A client that goes away or sends nonsense harms only itself.
        let _ = answer_one(stream, disk);
    }
}

fn answer_one(stream: UnixStream, disk: &Disk) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    match serde_json::from_str(&line)? {
        Ask::Stats => {}
        Ask::Pace => disk.pace(true),
        Ask::Hurry => disk.pace(false),
    }
    let mut stream = stream;
    serde_json::to_writer(&mut stream, &disk.counters())?;
    stream.write_all(b"\n")?;
    Ok(())
}
