//! Reading files of /proc line by line, with little stack, and the numbers in them.

use core::ffi::CStr;

use crate::raw::{Errno, call};

/// Longer lines are dropped; those of the files that we read have about a hundred bytes.
const BUFFER: usize = 1024;

/// Calls `each` with every line of a file, without its end. open(2), read(2), close(2).
///
/// # Errors
/// That of open(2) or read(2).
pub fn lines(path: &CStr, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    let mut buffer = [0; BUFFER];
    let (mut filled, mut dropping) = (0, false);
    let ended = loop {
        let room = buffer.get_mut(filled..).unwrap_or_default();
        // SAFETY: the kernel writes at most the room's length into it.
        match unsafe { call!(libc::SYS_read, fd, room.as_mut_ptr(), room.len()) } {
            Ok(0) => break Ok(()),
            Ok(length) => {
                let end = (filled + length).min(BUFFER);
                let used = take(buffer.get(..end).unwrap_or_default(), |line| {
                    if !core::mem::take(&mut dropping) {
                        each(line);
                    }
                });
                dropping |= used == 0 && end == BUFFER;
                let used = if dropping { end } else { used };
                for at in used..end {
                    let byte = buffer.get(at).copied().unwrap_or_default();
                    if let Some(place) = buffer.get_mut(at - used) {
                        *place = byte;
                    }
                }
                filled = end - used;
            }
            Err(errno) => break Err(errno),
        }
    };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    ended
}

/// Gives the whole lines at the beginning of `text` to `each`; returns how many bytes they take.
fn take(text: &[u8], mut each: impl FnMut(&[u8])) -> usize {
    let mut taken = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Some((b'\n', line)) = line.split_last() {
            each(line);
            taken += line.len() + 1;
        }
    }
    taken
}

/// The number that a word begins with; zero if it begins with none.
pub(crate) fn number(digits: &[u8]) -> u64 {
    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0u64, |number, digit| {
        number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::ffi::CString;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    use std::vec::Vec;

    use super::*;

    fn lines_of(text: &[u8]) -> Vec<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let path = CString::new(file.path().as_os_str().as_bytes()).unwrap();
        let mut found = Vec::new();
        lines(&path, |line| found.push(line.to_vec())).unwrap();
        found
    }

    #[test]
    fn no_part_of_a_line_that_is_too_long_is_taken_for_a_line() {
        assert_eq!(lines_of(b"one\n\ntwo\ncut"), [&b"one"[..], b"", b"two"]);
        for length in [BUFFER - 1, BUFFER, BUFFER + 1, 2 * BUFFER, 3 * BUFFER - 5] {
            let long = [b"first\n".to_vec(), std::vec![b'x'; length], b"\nlast\n".to_vec()];
            let found = lines_of(&long.concat());
            let whole = found.iter().all(|line| [5, 4, length].contains(&line.len()));
            let ends = (found.first(), found.last());
            let known = (Some(&b"first".to_vec()), Some(&b"last".to_vec()));
            assert!(whole && ends == known, "{length}: {:?}", found.iter().map(Vec::len));
        }
    }
}
