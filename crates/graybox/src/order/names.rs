//! Many file names in little memory: one buffer and one end per name.

use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What ends a name in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// A newline, for people.
    #[default]
    Newline,
    /// A zero byte, which no name can contain.
    Nul,
}

impl Delimiter {
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Newline => b'\n',
            Self::Nul => 0,
        }
    }
}

/// A list of names.
#[derive(Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    /// Adds a name.
    pub fn push(&mut self, name: &OsStr) {
        self.bytes.extend_from_slice(name.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Reads names until there are `most` or the input ends; whether there may be more.
    /// Empty names, which no file has, are skipped.
    ///
    /// # Errors
    /// Of the input.
    pub fn fill(
        &mut self,
        input: &mut dyn BufRead,
        delimiter: Delimiter,
        most: usize,
    ) -> io::Result<bool> {
        while self.len() < most {
            let start = self.bytes.len();
            if input.read_until(delimiter.byte(), &mut self.bytes)? == 0 {
                return Ok(false);
            }
            if self.bytes.last() == Some(&delimiter.byte()) {
                self.bytes.pop();
            }
            if self.bytes.len() > start {
                self.ends.push(self.bytes.len());
            }
        }
        Ok(true)
    }

    /// Forgets all names, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name with this index, counted from 0 in the order of their coming.
    ///
    /// # Panics
    /// If there is no such name.
    #[must_use]
    pub fn get(&self, index: usize) -> &Path {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Path::new(OsStr::from_bytes(&self.bytes[start..self.ends[index]]))
    }

    /// Writes the name and its end.
    ///
    /// # Errors
    /// Of the output.
    pub fn write(&self, index: usize, out: &mut dyn Write, delimiter: Delimiter) -> io::Result<()> {
        out.write_all(self.get(index).as_os_str().as_bytes())?;
        out.write_all(&[delimiter.byte()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_a_stream() {
        let mut input: &[u8] = b"one\n\ntwo\nth\xffree";
        let mut names = Names::default();
        assert!(names.fill(&mut input, Delimiter::Newline, 2).unwrap());
        assert_eq!((names.get(0), names.get(1)), (Path::new("one"), Path::new("two")));
        names.clear();
        assert!(!names.fill(&mut input, Delimiter::Newline, 2).unwrap());
        assert_eq!(names.len(), 1);
        let mut out = Vec::new();
        names.write(0, &mut out, Delimiter::Nul).unwrap();
        assert_eq!(out, b"th\xffree\0");
    }
}
