//! A file system that a daemon of its own serves (FUSE), and that hangs when it is told to.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::guest::Compiler;
use crate::process::{Group, kill_group, send};
use crate::product;

/// What is mounted; unmounted when this is dropped.
#[derive(Debug)]
pub struct Served {
    daemon: Group,
    folder: PathBuf,
}

impl Served {
    /// Mounts one on this folder, in which all users may do what they like.
    ///
    /// # Errors
    /// What the machine lacks for that.
    ///
    /// # Panics
    /// The daemon does not compile.
    pub fn on(folder: &Path, compiler: &Compiler) -> Result<Self, &'static str> {
        if !product::is_root() {
            return Err("only the superuser mounts without fusermount(1)");
        }
        let program = compiler.compile("serving.c");
        let mut command = Command::new(program);
        let mut daemon = Group::start(command.arg(folder).stdout(Stdio::piped()));
        let mut line = String::new();
        let output = daemon.stdout.as_mut().expect("piped");
        let told = output.take("ready".len() as u64).read_to_string(&mut line);
        if told.is_err() || line != "ready" {
            return Err("no FUSE");
        }
        Ok(Self { daemon, folder: folder.to_owned() })
    }

    /// Answers nothing as long as the returned value lives: it is to be dropped before the processes that wait.
    #[must_use]
    pub fn hang(&self) -> Hanging {
        send(self.daemon.id().cast_signed(), libc::SIGSTOP);
        Hanging(self.daemon.id())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        kill_group(self.daemon.id());
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}

/// A file system that hangs. When this is dropped its daemon is killed, and the kernel refuses all that waits for it.
#[derive(Debug)]
pub struct Hanging(u32);

impl Drop for Hanging {
    fn drop(&mut self) {
        kill_group(self.0);
    }
}
