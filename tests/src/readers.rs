//! Two programs that read without end, a dynamic and a static one, and two files to read that are not in the page cache.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::guest::Compiler;
use crate::{cold, product};

/// Bytes of each file.
const SIZE: usize = 64 << 20;

/// What a job and others read, by which programs; all are words of a command, and end with this value.
#[derive(Debug)]
pub struct Readers {
    /// The file of the job.
    pub ours: String,
    /// The file of others.
    pub theirs: String,
    /// The dynamic program.
    pub dynamic: String,
    /// The static program.
    pub fixed: String,
    _folder: TempDir,
}

impl Readers {
    /// Makes the files and compiles the programs.
    ///
    /// # Errors
    /// What the machine lacks for that.
    ///
    /// # Panics
    /// The files cannot be made, or the dynamic program does not compile.
    pub fn new() -> Result<Self, &'static str> {
        let folder = product::folder();
        let compiler = Compiler::new(folder.path()).ok_or("no C compiler")?;
        let file = |name| {
            let path = folder.path().join(name);
            cold::make(&path, SIZE).expect("a file");
            fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("our file");
            text(&path)
        };
        let program = |options: &[&str], name: &str| {
            let made = compiler.compile_with("endless.c", options).ok()?;
            let kept = folder.path().join(name);
            fs::rename(made, &kept).expect("a program");
            Some(text(&kept))
        };
        Ok(Self {
            ours: file("ours"),
            theirs: file("theirs"),
            dynamic: program(&[], "dynamic").expect("an ordinary program"),
            fixed: program(&["-static"], "fixed").ok_or("no static libc")?,
            _folder: folder,
        })
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}
