//! What runs in the background: programs that people have, each again and again.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::passes;
use super::trees::{FILES_EACH, forest, git, give_all};
use crate::experiments::peer::{Background as Running, Peer};
use crate::frame::requirement::Requirement;
use crate::lab::{Lab, files};
use crate::random::Random;
use crate::removal::unless_missing;
use crate::tool;

/// A file that is backed up, or read in other ways.
const DATA_BYTES: u64 = 400_000_000;
/// Directories of small files.
const DIRECTORIES: u32 = 120;
/// Lines of 64 bytes to be sorted.
const LINES: u64 = 3_000_000;
/// Commits of the repository that is packed, and sources that are compiled.
const COMMITS: u32 = 20;
const SOURCES: u32 = 400;
/// Folders and files that backgrounds make, removed between two samples.
const MADE: [&str; 5] = ["copy", "unpacked", "sorted", "written", "links"];

/// A background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Background {
    name: &'static str,
    /// Without which it cannot run.
    program: &'static str,
    /// One pass; `$M` is a folder in memory. What is typed has no quotes.
    script: &'static str,
    outer: Outer,
}

/// What is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outer {
    /// The script with all of its passes.
    Script,
    /// The command of each pass, as typed at a prompt.
    Command,
}

const fn script(name: &'static str, program: &'static str, script: &'static str) -> Background {
    Background { name, program, script, outer: Outer::Script }
}

const fn typed(name: &'static str, program: &'static str, script: &'static str) -> Background {
    Background { name, program, script, outer: Outer::Command }
}

impl Background {
    /// All of them.
    pub const ALL: [Self; 16] = [
        script("rsync", "rsync", "rsync --whole-file --ignore-times data \"$M\"/copy"),
        typed("restic", "restic", "restic -q --no-cache -r $M/restic backup --force data"),
        script(
            "restic in a script",
            "restic",
            "restic -q --no-cache -r \"$M\"/restic backup --force data",
        ),
        script(
            "borg",
            "borg",
            "borg break-lock \"$M\"/borg && borg create --files-cache=disabled \"$M\"/borg::$(date +%s%N) forest",
        ),
        script("rclone", "rclone", "rm -rf copy; rclone -q copy forest copy"),
        script("tar", "tar", "tar cf - forest | cat"),
        script("find", "find", "find forest -size +1000k"),
        script("cp", "cp", "rm -rf copy; cp -r forest copy"),
        script(
            "untar",
            "tar",
            "rm -rf unpacked; mkdir unpacked; tar xf \"$M\"/forest.tar -C unpacked",
        ),
        script("git gc", "git", "git -C repository fsck && git -C repository repack -adfq"),
        script("make -j8", "make", "rm -f build/*.o; make -s -j8 -C build"),
        script("sort", "sort", "sort -S 20M -T . -o sorted lines"),
        script("dd, writing", "dd", "dd if=/dev/zero of=written bs=1M count=400"),
        script(
            "mmap",
            "fio",
            "fio --thread --name=a --filename=data --rw=read --ioengine=mmap --minimal",
        ),
        script(
            "io_uring",
            "fio",
            "fio --thread --name=a --filename=data --rw=read --bs=256k --iodepth=8 --direct=1 --ioengine=io_uring --minimal",
        ),
        script("rm -r", "rm", "cp -rl forest links; rm -r links"),
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Why it cannot run here.
    pub fn lack(self, lab: &Lab) -> Option<String> {
        Requirement::Program(self.program).lack(&lab.site)
    }

    /// Starts it under a treatment.
    pub fn start(self, lab: &Lab, peer: Peer) -> anyhow::Result<Running> {
        let forever = |pass: &str| format!("while {}; do {pass} || exit; done", passes::ASK);
        let mut shell = lab.command("sh");
        let mut command = match self.outer {
            Outer::Script => {
                shell.args(["-c", &forever(self.script)]);
                peer.wrap(lab, &shell)?
            }
            Outer::Command => {
                let memory = lab.memory().to_string_lossy();
                let words = self.script.split(' ').map(|word| word.replace("$M", &memory));
                let mut typed = lab.command(self.program);
                typed.args(words.skip(1));
                let wrapped = peer.wrap(lab, &typed)?;
                shell.args(["-c", &forever("\"$@\""), "sh"]);
                shell.arg(wrapped.get_program()).args(wrapped.get_args());
                shell
            }
        };
        set_variables(&mut command, lab);
        peer.begin(lab, command)
    }
}

/// Sets what scripts and backup programs find in their environment.
fn set_variables(command: &mut Command, lab: &Lab) {
    for name in ["M", "TMPDIR", "BORG_BASE_DIR"] {
        command.env(name, lab.memory());
    }
    command.env("RESTIC_PASSWORD", "a").env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
}

/// Makes the files of all backgrounds, and the repositories of those that are installed.
pub fn prepare(lab: &Lab) -> anyhow::Result<()> {
    let folder = lab.folder();
    files::make(lab, &folder.join("data"), DATA_BYTES)?;
    let place = folder.join("forest");
    forest(&place, DIRECTORIES)?;
    let archive = lab.memory().join("forest.tar");
    let words =
        ["cf".as_ref(), archive.as_os_str(), "-C".as_ref(), place.as_os_str(), ".".as_ref()];
    tool::run("tar", words)?;
    make_lines(&folder.join("lines"))?;
    make_repository(&folder.join("repository"))?;
    make_sources(&folder.join("build"))?;
    give_all(lab, folder)?;
    for (program, script) in [
        ("restic", "restic -q --no-cache -r \"$M\"/restic init"),
        ("borg", "borg init -e none \"$M\"/borg"),
    ] {
        if Requirement::Program(program).lack(&lab.site).is_none() {
            let mut shell = lab.command("sh");
            shell.args(["-c", script]);
            set_variables(&mut shell, lab);
            crate::lab::job::Job::start(&mut shell)?.finish()?;
        }
    }
    Ok(())
}

/// Removes what the last background made.
pub fn reset(lab: &Lab) -> anyhow::Result<()> {
    for name in MADE {
        let path = lab.folder().join(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        unless_missing(removed, &path)?;
    }
    Ok(())
}

fn make_lines(file: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::new(fs::File::create(file).context("cannot make lines to sort")?);
    let mut random = Random::new(1);
    for _ in 0..LINES {
        writeln!(out, "{:063}", random.next())?;
    }
    out.flush().context("cannot write lines to sort")
}

/// A repository of many versions of a hundred files.
fn make_repository(folder: &Path) -> anyhow::Result<()> {
    forest(folder, 1)?;
    tool::run("git", ["init".as_ref(), "-q".as_ref(), folder.as_os_str()])?;
    for commit in 0..COMMITS {
        for file in 0..FILES_EACH {
            let path = folder.join("0").join(file.to_string());
            let mut out = fs::OpenOptions::new().append(true).open(path)?;
            writeln!(out, "{commit} {file}")?;
        }
        git(folder, &["add", "."])?;
        git(folder, &["commit", "-q", "-m", "more"])?;
    }
    Ok(())
}

fn make_sources(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).context("cannot make a folder for sources")?;
    let rules = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n";
    fs::write(folder.join("Makefile"), rules)?;
    for number in 0..SOURCES {
        let text = format!("#include <stdio.h>\nint f{number}(void) {{ return {number}; }}\n");
        fs::write(folder.join(format!("a{number}.c")), text).context("cannot write a source")?;
    }
    Ok(())
}
