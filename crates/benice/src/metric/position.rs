//! How far a job is in a file, from `/proc/PID/fdinfo` (proc(5)).

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::metric::Source;
use crate::tree::Tree;

pub(super) struct Position {
    path: PathBuf,
}

impl Position {
    pub(super) fn new(path: PathBuf) -> Self {
        // The kernel shows absolute paths without links.
        Self { path: fs::canonicalize(&path).unwrap_or(path) }
    }

    fn in_process(&self, pid: i32) -> Option<f64> {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let open = entries.flatten().filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|target: PathBuf| target == self.path)
        });
        let positions = open.filter_map(|entry| position(pid, Path::new(&entry.file_name())));
        positions.reduce(f64::max)
    }
}

fn position(pid: i32, descriptor: &Path) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", descriptor.display())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pos:"))?.trim().parse().ok()
}

impl Source for Position {
    /// The farthest position of all who have the file open.
    fn read(&mut self, tree: &Tree) -> io::Result<f64> {
        let pids = tree.iter().map(|stat| stat.process.pid.as_raw_nonzero().get());
        let farthest = pids.filter_map(|pid| self.in_process(pid)).reduce(f64::max);
        farthest.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}
