//! A foreground that asks for something at regular times, as people and interactive programs do, and prints how
//! long each request took.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use memmap2::MmapMut;

use crate::random::Random;

/// What a read from the disk moves.
const PAGE: usize = 4096;
/// A piece of a video: twenty a second are 3.2 MB/s.
const PIECE: usize = 160_000;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Request {
    /// Read 4 KiB at a random place, past the page cache
    Read,
    /// Append 4 KiB and have them written (fdatasync)
    Sync,
    /// Read the next 160 kB, as a player does
    Frame,
    /// Insert a row by sqlite3, in a transaction of its own
    Commit,
}

/// Requests at regular times.
#[derive(Debug, Args)]
pub struct Paced {
    /// What is asked for
    request: Request,
    /// The file to read or write, or the database
    file: PathBuf,
    /// Milliseconds from one request to the next; a late one delays the next
    #[arg(long)]
    every: u64,
    /// Seconds after which there are no more
    #[arg(long)]
    seconds: f64,
}

impl Paced {
    /// Makes the requests, then prints a line for each: when it was made and how long it took, in seconds.
    ///
    /// # Errors
    /// The first request that fails.
    pub fn run(self) -> anyhow::Result<()> {
        let mut ask = self.request.start(&self.file)?;
        let every = Duration::from_millis(self.every);
        let mut waits = Vec::new();
        let begun = Instant::now();
        while begun.elapsed().as_secs_f64() < self.seconds {
            let asked = begun.elapsed();
            ask()?;
            waits.push((asked, begun.elapsed().saturating_sub(asked)));
            std::thread::sleep((asked + every).saturating_sub(begun.elapsed()));
        }
        let mut out = std::io::stdout().lock();
        for (asked, took) in waits {
            writeln!(out, "{:.6} {:.6}", asked.as_secs_f64(), took.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Reads what [`Paced::run`] printed.
///
/// # Errors
/// It is something else.
pub fn parse(text: &str) -> anyhow::Result<Vec<(f64, f64)>> {
    let line = |line: &str| -> anyhow::Result<(f64, f64)> {
        let (asked, took) = line.split_once(' ').context("no wait")?;
        Ok((asked.parse()?, took.parse()?))
    };
    text.lines().map(line).collect()
}

type Ask = Box<dyn FnMut() -> anyhow::Result<()>>;

impl Request {
    fn start(self, file: &Path) -> anyhow::Result<Ask> {
        let context = || format!("cannot open {}", file.display());
        match self {
            Self::Read => {
                let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
                let input = OpenOptions::new().read(true).custom_flags(direct).open(file);
                reads(input.with_context(context)?)
            }
            Self::Sync => {
                let output = OpenOptions::new().create(true).append(true).open(file);
                Ok(syncs(output.with_context(context)?))
            }
            Self::Frame => Ok(frames(File::open(file).with_context(context)?)),
            Self::Commit => commits(Database::open(file)?),
        }
    }
}

fn reads(input: File) -> anyhow::Result<Ask> {
    let pages = (input.metadata()?.len() / PAGE as u64).max(1);
    // Direct I/O needs an aligned buffer.
    let mut page = MmapMut::map_anon(PAGE)?;
    let mut random = Random::new(u64::from(std::process::id()));
    Ok(Box::new(move || {
        let place = random.below(pages) * PAGE as u64;
        input.read_exact_at(&mut page, place).context("cannot read")
    }))
}

fn syncs(mut output: File) -> Ask {
    Box::new(move || {
        output.write_all(&[b'a'; PAGE])?;
        output.sync_data().context("cannot sync")
    })
}

fn frames(input: File) -> Ask {
    let (mut place, mut piece) = (0, vec![0; PIECE]);
    Box::new(move || {
        input.read_exact_at(&mut piece, place).context("the video is too short")?;
        place += PIECE as u64;
        Ok(())
    })
}

fn commits(mut database: Database) -> anyhow::Result<Ask> {
    database.ask("create table if not exists t(x);")?;
    Ok(Box::new(move || database.ask("insert into t values(randomblob(100));")))
}

/// The command-line program of SQLite, which answers each statement with a line.
struct Database {
    child: Child,
    statements: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Database {
    fn open(file: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new("sqlite3");
        command.arg("-batch").arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot run sqlite3")?;
        let statements = child.stdin.take().context("sqlite3 has no input")?;
        let answers = BufReader::new(child.stdout.take().context("sqlite3 has no output")?);
        Ok(Self { child, statements, answers })
    }

    fn ask(&mut self, statement: &str) -> anyhow::Result<()> {
        writeln!(self.statements, "{statement} select 'done';")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        anyhow::ensure!(answer.trim_end() == "done", "sqlite3 answers {answer:?}");
        Ok(())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It ends by itself with its input; no caller is left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_back() {
        let waits = parse("0.000010 0.005000\n0.050000 0.250000\n").unwrap();
        assert_eq!(waits, [(0.00001, 0.005), (0.05, 0.25)]);
        assert!(parse("0.1\n").is_err() && parse("a b\n").is_err());
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn every_request_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, vec![0; 4 * PIECE]).unwrap();
        for request in [Request::Frame, Request::Sync] {
            let mut ask = request.start(&file).unwrap();
            ask().and_then(|()| ask()).unwrap();
        }
        assert_eq!(std::fs::metadata(&file).unwrap().len(), (4 * PIECE + 2 * PAGE) as u64);
        // Not every file system of a temporary folder has direct I/O.
        reads(File::open(&file).unwrap()).and_then(|mut ask| ask()).unwrap();
    }
}
