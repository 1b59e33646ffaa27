//! Progress that a job writes to a log or an output file: lines, or a number in them.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use discnice_processes::tree::Tree;
use regex::bytes::Regex;

use crate::control::metric::bar::Bar;
use crate::control::metric::source::{Source, open_file};

/// Read at one look; a log that grows faster is followed with a delay.
const LONGEST_READ: u64 = 1 << 20;
/// A line longer than this is not waited for.
const LONGEST_LINE: usize = 64 * 1024;

/// Follows a log.
pub(crate) struct Log {
    path: PathBuf,
    regex: Option<Regex>,
    /// The file that is being read (its inode) and how far it was read.
    inode: u64,
    offset: u64,
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
    value: f64,
    /// The first group of the last match, or without a group all of it.
    last: Option<Vec<u8>>,
}

impl Log {
    pub(super) fn lines(path: PathBuf) -> Self {
        Self { path, regex: None, inode: 0, offset: 0, partial: Vec::new(), value: 0.0, last: None }
    }

    /// Counts matches, or takes the number in the first group of the last one.
    pub(crate) fn matches(path: PathBuf, regex: Regex) -> Self {
        Self { regex: Some(regex), ..Self::lines(path) }
    }

    /// The bytes that were added since the last look. A log that was rotated (another file of that
    /// name) or truncated is read from its beginning; of one that is there at the first look, the
    /// end says what progress counts from.
    fn added(&mut self) -> io::Result<Vec<u8>> {
        let mut file = open_file(&self.path)?;
        let found = file.metadata()?;
        if found.ino() != self.inode || found.len() < self.offset {
            let is_first = self.inode == 0;
            self.inode = found.ino();
            self.offset = if is_first { found.len().saturating_sub(LONGEST_READ) } else { 0 };
            self.partial.clear();
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        self.offset += file.take(LONGEST_READ).read_to_end(&mut bytes)? as u64;
        Ok(bytes)
    }

    fn line(&mut self, line: &[u8]) {
        let Some(regex) = &self.regex else {
            self.value += 1.0;
            return;
        };
        for found in regex.captures_iter(line) {
            let group = found.get(1).or_else(|| found.get(0));
            self.last = group.map(|group| group.as_bytes().to_vec());
            match found.get(1) {
                None => self.value += 1.0,
                Some(group) => {
                    let text = std::str::from_utf8(group.as_bytes()).unwrap_or_default();
                    // What is no number leaves the last one in force.
                    self.value = text.parse().unwrap_or(self.value);
                }
            }
        }
    }
}

impl Log {
    /// What the first group of the last match was.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// Reads what was added; returns the number.
    pub(crate) fn follow(&mut self) -> io::Result<f64> {
        let added = self.added()?;
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend(added);
        let mut rest = bytes.as_slice();
        // Progress bars end their lines with a carriage return.
        while let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.line(&rest[..end]);
            rest = &rest[end + 1..];
        }
        if rest.len() <= LONGEST_LINE {
            self.partial = rest.to_vec();
        }
        Ok(self.value)
    }
}

/// Follows the progress bars in a log.
pub(super) struct Bars {
    log: Log,
    bar: Bar,
}

impl Bars {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { log: Log::lines(path), bar: Bar::default() }
    }
}

impl Source for Bars {
    //= ms-manners/11-progress-bar
    fn read(&mut self, _tree: &Tree) -> io::Result<f64> {
        let added = self.log.added()?;
        self.bar.feed(&added);
        Ok(self.bar.value())
    }
}

impl Source for Log {
    //= ms-manners/7.2-counters
    fn read(&mut self, _tree: &Tree) -> io::Result<f64> {
        self.follow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn lines_are_counted_across_rotation_and_truncation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let tree = Tree::default();
        let mut log = Log::lines(path.clone());
        assert!(log.read(&tree).is_err());
        fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(log.read(&tree).unwrap(), 2.0);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"ee\n").unwrap();
        assert_eq!(log.read(&tree).unwrap(), 3.0);
        fs::rename(&path, directory.path().join("log.1")).unwrap();
        fs::write(&path, "four\n").unwrap();
        assert_eq!(log.read(&tree).unwrap(), 4.0);
        fs::write(&path, "").unwrap();
        assert_eq!(log.read(&tree).unwrap(), 4.0);
        fs::write(&path, "five\n").unwrap();
        assert_eq!(log.read(&tree).unwrap(), 5.0);
        fs::remove_file(&path).unwrap();
        assert!(log.read(&tree).is_err());
    }

    #[test]
    fn what_stands_in_a_log_before_the_first_look_is_no_progress() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "0123456 files\n".repeat(300_000) + "7 files\n").unwrap();
        let tree = Tree::default();
        let mut log = Log::lines(path.clone());
        let mut number = Log::matches(path.clone(), Regex::new(r"(\d+) files").unwrap());
        let before = log.read(&tree).unwrap();
        assert_eq!(number.read(&tree).unwrap(), 7.0);
        assert_eq!(log.read(&tree).unwrap(), before);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"8 files\n").unwrap();
        assert_eq!(log.read(&tree).unwrap(), before + 1.0);
        assert_eq!(number.read(&tree).unwrap(), 8.0);
    }

    #[test]
    fn bars_are_followed_as_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "5%\r1").unwrap();
        let mut bars = Bars::new(path.clone());
        assert_eq!(bars.read(&Tree::default()).unwrap(), 0.0);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"5%\r").unwrap();
        assert_eq!(bars.read(&Tree::default()).unwrap(), 10.0);
    }

    //= ms-manners/7.2-counters
    #[test]
    fn numbers_and_matches() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "10 files\r20 files\nx files\nerror\n").unwrap();
        let tree = Tree::default();
        let mut number = Log::matches(path.clone(), Regex::new(r"(\w+) files").unwrap());
        assert_eq!(number.read(&tree).unwrap(), 20.0);
        let mut count = Log::matches(path, Regex::new("files").unwrap());
        assert_eq!(count.read(&tree).unwrap(), 3.0);
    }
}
