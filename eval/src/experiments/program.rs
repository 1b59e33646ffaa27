//! The programs of DiscNice sections 6.1 and 6.3, with the files that they need.

use std::fs;
use std::process::Command;

use anyhow::{Context, bail};

use super::source_tree;
use crate::frame::experiment::Scale;
use crate::frame::requirement::Requirement;
use crate::lab::job::Job;
use crate::lab::{Lab, files};

const MEGABYTE: u64 = 1_000_000;

/// A program that is measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Reads a 600 MB file from begin to end.
    Sequential,
    /// Reads blocks of a 600 MB file at random, 600 MB together.
    Random,
    /// Reads one byte every 12 KB of a 600 MB file.
    Stride,
    /// Creates a file of 400 MB.
    Create,
    /// Writes the same 10 KB of a file 10,000 times.
    RegionWrite,
    /// Creates and unlinks a file of 10 KB 10,000 times.
    CreateDelete,
    /// Unpacks an archive of 200 MB.
    Tar,
    /// Compiles a source tree: the one that was given, else one that we generate.
    Make,
    /// Searches 200 MB of files for `epoch`.
    Grep,
}

/// Block of the random reads. The paper does not give its own.
const RANDOM_BLOCK: u64 = 64 * 1024;

impl Program {
    /// Its name in the paper and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Stride => "stride",
            Self::Create => "create",
            Self::RegionWrite => "region-write",
            Self::CreateDelete => "create-delete",
            Self::Tar => "tar",
            Self::Make => "make",
            Self::Grep => "grep",
        }
    }

    /// The paper's size, or an eighth to a tenth of it in a quick run.
    #[must_use]
    pub const fn bytes(self, scale: Scale) -> u64 {
        let (full, quick) = match self {
            Self::Create => (400, 40),
            Self::Tar => (200, 30),
            Self::Grep => (200, 10),
            Self::Make => (75, 7),
            _ => (600, 60),
        };
        (if scale.quick { quick } else { full }) * MEGABYTE
    }

    /// File I/O in bytes of those that should hardly touch the disk; `None` of the others.
    #[must_use]
    pub const fn asks(self) -> Option<u64> {
        match self {
            Self::RegionWrite | Self::CreateDelete => Some(10_000 * 10 * 1024),
            _ => None,
        }
    }

    /// Returns true if it makes many files, with inodes and names that cost the disk more than
    /// their data.
    #[must_use]
    pub const fn makes_files(self) -> bool {
        matches!(self, Self::Tar | Self::Make)
    }

    /// Why it cannot run; `None` if it can.
    #[must_use]
    pub fn lack(self, lab: &Lab) -> Option<String> {
        if self != Self::Make {
            return None;
        }
        let missing = ["make", "gcc", "ld"].map(Requirement::Program);
        let lacks = missing.into_iter().find_map(|program| program.lack(&lab.site));
        lacks.or_else(|| {
            let tree = lab.site.make_source()?;
            (!tree.is_dir()).then(|| format!("{} is not a directory", tree.display()))
        })
    }

    /// Makes its input, once, and has it and DiscNice in memory while the lab is there.
    ///
    /// # Errors
    /// The disk is full, or a tool fails.
    pub fn prepare(self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        if self.lack(lab).is_some() {
            return Ok(());
        }
        self.make_input(lab, scale)?;
        self.reset(lab)?;
        let command = self.command(lab, scale);
        lab.make_resident(Job::start(&mut lab.limited(&["--disk", "unlimited"], &command)?)?)
    }

    fn make_input(self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        let file = lab.folder().join(self.name());
        match self {
            Self::Sequential | Self::Random | Self::Stride | Self::RegionWrite => {
                files::make(lab, &file, self.bytes(scale))
            }
            Self::Create | Self::CreateDelete => Ok(()),
            Self::Tar => files::make_archive(lab, &file, self.bytes(scale)),
            Self::Grep => {
                let archive = lab.memory().join("grep.tar");
                files::make_archive(lab, &archive, self.bytes(scale))?;
                unpack(lab, &archive, &file)?;
                fs::remove_file(&archive).context("cannot remove an archive")
            }
            Self::Make if lab.site.make_source().is_none() => source_tree::make(lab, scale),
            Self::Make => Ok(()),
        }
    }

    /// Undoes what its last run made, and makes what every run needs fresh.
    ///
    /// # Errors
    /// The disk is full, or a tool fails.
    fn reset(self, lab: &Lab) -> anyhow::Result<()> {
        let made = lab.folder().join(format!("{}-made", self.name()));
        match fs::symlink_metadata(&made) {
            Ok(facts) if facts.is_dir() => fs::remove_dir_all(&made),
            Ok(_) => fs::remove_file(&made),
            Err(_) => Ok(()),
        }
        .context("cannot remove what the last run made")?;
        match self {
            Self::Tar => {
                fs::create_dir(&made).context("cannot make a folder")?;
                files::give(lab, &made)
            }
            Self::Make => {
                let own = source_tree::place(lab);
                let source = lab.site.make_source().unwrap_or(&own).as_os_str();
                crate::tool::run("cp", ["-r".as_ref(), "--".as_ref(), source, made.as_os_str()])?;
                give_tree(lab, &made)
            }
            _ => Ok(()),
        }
    }

    /// What every run begins with: its last one undone, and what the program reads cold.
    ///
    /// # Errors
    /// The disk is full or in use, or a tool fails.
    pub fn begin(self, lab: &Lab) -> anyhow::Result<()> {
        lab.in_no_time(|| self.reset(lab))?;
        lab.cold()
    }

    /// The command, as the unprivileged user.
    #[must_use]
    pub fn command(self, lab: &Lab, scale: Scale) -> Command {
        let name = self.name();
        let made = format!("{name}-made");
        let (mut command, arguments) = match self {
            Self::Sequential | Self::Stride => (lab.workload(name), vec![name.to_owned()]),
            Self::Random => {
                let reads = self.bytes(scale) / RANDOM_BLOCK;
                let block = RANDOM_BLOCK.to_string();
                let options = ["--block", &block, "--reads", &reads.to_string(), name];
                (lab.workload(name), options.map(str::to_owned).into())
            }
            Self::Create => {
                let size = self.bytes(scale).to_string();
                (lab.workload(name), vec![made, "--size".into(), size])
            }
            Self::RegionWrite => {
                (lab.workload(name), ["--times", "10000", name].map(str::to_owned).into())
            }
            Self::CreateDelete => {
                (lab.workload(name), vec!["--times".into(), "10000".into(), made])
            }
            Self::Tar => {
                let options = ["--extract", "--file", name, "--directory"];
                let options = options.into_iter().map(str::to_owned).chain([made]);
                (lab.command("tar"), options.collect())
            }
            Self::Make => (lab.command("make"), vec!["--silent".into(), "-C".into(), made]),
            Self::Grep => {
                let options = ["--recursive", "--text", "--count", "epoch", name];
                (lab.command("sh"), quiet(&options))
            }
        };
        command.args(arguments);
        command
    }
}

/// grep(1) reports with status 1 that it found nothing, which is no failure here.
fn quiet(options: &[&str]) -> Vec<String> {
    ["-c", "grep \"$@\" || test $? -eq 1", "sh"]
        .iter()
        .chain(options)
        .map(|w| (*w).to_owned())
        .collect()
}

fn unpack(lab: &Lab, archive: &std::path::Path, folder: &std::path::Path) -> anyhow::Result<()> {
    fs::create_dir(folder).context("cannot make a folder")?;
    let words: [&std::ffi::OsStr; 5] = [
        "--extract".as_ref(),
        "--file".as_ref(),
        archive.as_os_str(),
        "--directory".as_ref(),
        folder.as_os_str(),
    ];
    crate::tool::run("tar", words)?;
    give_tree(lab, folder)
}

fn give_tree(lab: &Lab, folder: &std::path::Path) -> anyhow::Result<()> {
    let owner = format!("{}:{}", lab.disk.owner.uid, lab.disk.owner.gid);
    let words = ["-R".as_ref(), owner.as_ref(), "--".as_ref(), folder.as_os_str()];
    crate::tool::run("chown", words).map(drop)
}

/// The program of that name.
///
/// # Errors
/// There is none.
pub fn find(programs: &[Program], name: &str) -> anyhow::Result<Program> {
    match programs.iter().find(|program| program.name() == name) {
        Some(program) => Ok(*program),
        None => bail!("no program {name}"),
    }
}
