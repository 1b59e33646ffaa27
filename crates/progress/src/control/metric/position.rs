//! How far a job is in a file, from `/proc/PID/fdinfo` (proc(5)).

use std::path::{Path, PathBuf};
use std::{fs, io};

use discnice_processes::tree::Tree;
use discnice_sys::procfs;

use crate::control::metric::source::Source;

pub(super) struct Position {
    path: PathBuf,
}

impl Position {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn in_process(path: &Path, pid: u32) -> Option<f64> {
        if procfs::is_executing(pid) {
            return None;
        }
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let open = entries
            .flatten()
            .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path));
        let positions = open.filter_map(|entry| position(pid, Path::new(&entry.file_name())));
        positions.reduce(f64::max)
    }
}

fn position(pid: u32, descriptor: &Path) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", descriptor.display())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pos:"))?.trim().parse().ok()
}

impl Source for Position {
    /// Returns the farthest position of all processes that have the file open.
    fn read(&mut self, tree: &Tree) -> io::Result<f64> {
        // The kernel shows absolute paths without links. The job may not have made it yet.
        let path = fs::canonicalize(&self.path)?;
        let pids = tree.iter().map(|stat| stat.id);
        let farthest = pids.filter_map(|pid| Self::in_process(&path, pid)).reduce(f64::max);
        farthest.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}
