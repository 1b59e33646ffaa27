//! How far a job is in the largest file that it reads: what is behind the offset is left, as `pv -d` tells.

use std::fs;
use std::os::unix::fs::MetadataExt;

use discnice_sys::procfs;
use rustix::process::Pid;

/// A smaller file says nothing about how much is left.
const LARGE: u64 = 1 << 20;
/// So many processes and descriptors are looked at.
const PROCESSES: usize = 64;
const DESCRIPTORS: usize = 256;

/// The largest file that a job reads, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Device and inode.
    pub file: (u64, u64),
    /// Its length.
    pub size: u64,
    /// How far it is.
    pub offset: u64,
}

/// The largest file that is only read by one of these processes.
pub fn largest(processes: &[Pid]) -> Option<Reading> {
    let readings = processes.iter().take(PROCESSES).flat_map(|pid| {
        let id = pid.as_raw_nonzero().get().unsigned_abs();
        let most = if procfs::is_executing(id) { 0 } else { DESCRIPTORS };
        let entries = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        entries.take(most).filter_map(move |entry| {
            let file = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file)?;
            let rights = fs::symlink_metadata(entry.path()).ok()?.mode();
            let is_read = rights & 0o400 != 0 && rights & 0o200 == 0;
            let name = entry.file_name();
            let facts = fs::read_to_string(format!("/proc/{id}/fdinfo/{}", name.to_str()?)).ok()?;
            let offset = facts.lines().find_map(|line| line.strip_prefix("pos:"))?.trim();
            let (file, size) = ((file.dev(), file.ino()), file.len());
            let reading = Reading { file, size, offset: offset.parse().ok()? };
            (is_read && size >= LARGE).then_some(reading)
        })
    });
    readings.max_by_key(|one| one.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_largest_file_that_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, vec![1; 3 << 20]).unwrap();
        let mut file = fs::File::open(&path).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(MIB)).unwrap();
        let _written = fs::File::create(folder.path().join("made")).unwrap();
        let own = Pid::from_raw(std::process::id().cast_signed()).unwrap();
        let found = largest(&[own]).unwrap();
        assert!(found.size >= 3 * MIB);
        if found.size == 3 * MIB {
            assert_eq!(found.offset, MIB);
        }
    }
}
