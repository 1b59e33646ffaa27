//! What a person waits for.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::trees::{forest, git, give_all};
use crate::frame::experiment::Scale;
use crate::lab::job::Job;
use crate::lab::{Lab, files};
use crate::tool;

const MEGABYTE: u64 = 1_000_000;
/// What a foreground reads from end to end, or at random.
const LARGE_BYTES: u64 = 100 * MEGABYTE;
/// Directories with a hundred small files each, for grep and for git.
const DIRECTORIES: u32 = 15;
/// So long a paced foreground lasts: the first of its requests meets the background at full speed, so a 99th
/// percentile needs hundreds of them.
const SECONDS: u32 = 20;
const QUICK_SECONDS: u32 = 10;
/// What a program of some size imports.
const IMPORTS: &str = "import asyncio, unittest, email.mime.text, http.server, xml.dom.minidom, json, \
    csv, decimal, logging.config, multiprocessing.pool, concurrent.futures, argparse, difflib, pdb, \
    zipfile, tarfile, urllib.request, html.parser, statistics, ipaddress, ftplib, smtplib, imaplib";

/// A foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreground {
    /// Starts a Python program of many modules.
    Start,
    /// Reads 100 MB in order.
    Sequential,
    /// Commits of SQLite, 20 a second.
    Commits,
    /// Reads of 4 KiB at random, 20 a second.
    Reads,
    /// A video of 3.2 MB/s, 20 pieces a second.
    Video,
    /// Reads of 4 KiB at random, 200 a second, or as many as the disk can do.
    ManyReads,
    /// Appends of 4 KiB, each synced, 20 a second.
    Syncs,
    /// `grep -r` over small files.
    Grep,
    /// `git status` in a tree of small files.
    Status,
}

impl Foreground {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Start,
        Self::Sequential,
        Self::Commits,
        Self::Reads,
        Self::Video,
        Self::ManyReads,
        Self::Syncs,
        Self::Grep,
        Self::Status,
    ];
    /// How many of them a quick run measures.
    pub const QUICK: u32 = 5;

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "program start",
            Self::Sequential => "sequential read",
            Self::Commits => "sqlite commits",
            Self::Reads => "20 reads/s",
            Self::Video => "video",
            Self::ManyReads => "200 reads/s",
            Self::Syncs => "syncs",
            Self::Grep => "grep -r",
            Self::Status => "git status",
        }
    }

    /// About how many seconds it takes alone.
    pub fn seconds(self, scale: Scale) -> f64 {
        match self.is_paced() {
            true => scale.rounds(SECONDS, QUICK_SECONDS).into(),
            false => 3.0,
        }
    }

    /// Whether it asks at regular times, so that its longest waits count; else its whole time does.
    pub const fn is_paced(self) -> bool {
        !matches!(self, Self::Start | Self::Sequential | Self::Grep | Self::Status)
    }

    /// The command, as the unprivileged user.
    pub fn command(self, lab: &Lab, scale: Scale) -> Command {
        let paced = |request, file, every| {
            paced(lab, (request, file), every, scale.rounds(SECONDS, QUICK_SECONDS))
        };
        match self {
            Self::Start => python(lab),
            Self::Sequential => {
                let mut command = lab.workload("sequential");
                command.arg("large");
                command
            }
            // It finds nothing, which is no failure here.
            Self::Grep => {
                words(lab, &["sh", "-c", "grep -r 'nothing of this kind' tree || [ $? = 1 ]"])
            }
            Self::Status => words(lab, &["git", "-C", "tree", "status"]),
            Self::Commits => paced("commit", "database", 50),
            Self::Reads => paced("read", "large", 50),
            Self::ManyReads => paced("read", "large", 5),
            Self::Syncs => paced("sync", "log", 50),
            Self::Video => paced("frame", "large", 50),
        }
    }

    /// Makes its files.
    pub fn prepare(self, lab: &Lab) -> anyhow::Result<()> {
        match self {
            Self::Start => copy_modules(lab),
            Self::Sequential => files::make(lab, &lab.folder().join("large"), LARGE_BYTES),
            Self::Grep => {
                let tree = lab.folder().join("tree");
                forest(&tree, DIRECTORIES)?;
                tool::run("git", ["init".as_ref(), "-q".as_ref(), tree.as_os_str()])?;
                git(&tree, &["add", "."])?;
                git(&tree, &["commit", "-q", "-m", "all"])?;
                give_all(lab, &tree)
            }
            // They use the files of those above, or make their own.
            _ => Ok(()),
        }
    }
}

fn words(lab: &Lab, words: &[&str]) -> Command {
    let mut command = lab.command(words[0]);
    command.args(&words[1..]);
    command
}

fn paced(lab: &Lab, (request, file): (&str, &str), every: u32, seconds: u32) -> Command {
    let mut command = lab.workload("paced");
    command.args([request, file, "--every", &every.to_string()]);
    command.args(["--seconds", &seconds.to_string()]);
    command
}

/// A Python interpreter that finds its modules on the disk under test.
fn python(lab: &Lab) -> Command {
    let mut command = lab.command("python3");
    command.args(["-s", "-S", "-c", IMPORTS]);
    command.env("PYTHONHOME", lab.folder().join("python"));
    command
}

/// Copies Python's own modules to the disk, and has them compiled there.
fn copy_modules(lab: &Lab) -> anyhow::Result<()> {
    let ask = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let library = tool::run("python3", ["-c", ask])?;
    let library = Path::new(&library);
    let name = library.file_name().context("Python has no folder of modules")?;
    let folder = lab.folder().join("python");
    let copy = folder.join("lib").join(name);
    fs::create_dir_all(&copy).context("cannot make a folder for Python")?;
    let mut from = library.as_os_str().to_owned();
    from.push("/");
    let left_out = ["test", "site-packages", "dist-packages", "config-*", "idlelib"];
    let options = left_out.map(|name| format!("--exclude={name}"));
    let places = [from.as_os_str(), copy.as_os_str()];
    let options = options.iter().map(AsRef::as_ref);
    tool::run("rsync", ["-a".as_ref()].into_iter().chain(options).chain(places))?;
    give_all(lab, &folder)?;
    Job::start(&mut python(lab))?.finish().map(drop)
}
