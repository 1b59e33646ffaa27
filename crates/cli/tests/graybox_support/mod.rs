//! What the gray-box tests share: a folder on a disk file system, and running programs in it.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod tree;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_requirements::skip;

/// The program under test.
pub fn discnice() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_discnice"))
}

/// What a program said.
#[derive(Debug)]
pub struct Out {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(command: &mut Command) -> Out {
    let out = command.output().unwrap();
    Out {
        // -1: killed by a signal.
        status: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

const NOBODY: u32 = 65534;

pub fn run_as_nobody(command: &mut Command) -> Out {
    run(command.uid(NOBODY).gid(NOBODY))
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A folder of its own on the disk, removed at the end.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // Another user must be able to come in.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        Self(dir)
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, contents: &[u8]) {
        fs::write(self.path(name), contents).unwrap();
    }

    /// Puts a file on the disk and out of the page cache.
    pub fn make_cold(&self, name: &str) {
        let file = fs::File::open(self.path(name)).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }

    /// The program with these arguments, in this folder.
    pub fn discnice(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(discnice());
        command.args(words).current_dir(self.0.path());
        // No host profile: the same defaults everywhere.
        command.env("XDG_CACHE_HOME", self.0.path()).env("XDG_RUNTIME_DIR", self.0.path());
        command
    }

    /// Whether tests can act as another user here; says so if not.
    pub fn can_become_nobody(&self) -> bool {
        if !is_root() {
            skip!(false; "needs root to become another user");
        }
        if run_as_nobody(Command::new("test").arg("-x").arg(discnice())).status != 0 {
            skip!(false; "the build folder is closed to other users");
        }
        true
    }
}
