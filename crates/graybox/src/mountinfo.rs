//! Paths in proc_pid_mountinfo(5).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A path in which blanks, line ends and backslashes are written as octal numbers.
#[must_use]
pub fn plain(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let number = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = number.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match byte.filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}
