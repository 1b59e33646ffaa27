//! Scripts: `#!` and the interpreter's path. execve(2), "Interpreter scripts".

use crate::startup::Bytes;
use crate::startup::text::Text;

/// The kernel looks at so many bytes of a program (`BINPRM_BUF_SIZE`, include/linux/binfmts.h).
const HEAD: usize = 256;

/// Puts the interpreter that a script names into `path`; returns whether it is a script.
pub fn interpreter(file: &impl Bytes, path: &mut Text) -> bool {
    let mut head = [0; HEAD];
    let length = file.read_at(0, &mut head);
    let Some(line) = head.get(..length).and_then(|head| head.strip_prefix(b"#!")) else {
        return false;
    };
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = line.iter().position(|byte| !is_blank(byte)).unwrap_or(line.len());
    path.clear();
    if !path.push(line.get(start..).unwrap_or(&[])) {
        return false;
    }
    path.cut_at(|byte| matches!(byte, b' ' | b'\t' | b'\n' | 0));
    !path.bytes().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> Option<Vec<u8>> {
        let mut path = Text::new();
        interpreter(&text, &mut path).then(|| path.bytes().to_vec())
    }

    #[test]
    fn the_interpreter_is_the_first_word() {
        assert_eq!(of(b"#!/bin/sh\necho\n").unwrap(), b"/bin/sh");
        assert_eq!(of(b"#! /usr/bin/env -S python3\n").unwrap(), b"/usr/bin/env");
        assert_eq!(of(b"#!/bin/sh").unwrap(), b"/bin/sh");
    }

    #[test]
    fn what_is_no_script_names_none() {
        for text in [&b""[..], b"#", b"#!", b"#! \n", b"\x7fELF", b"echo"] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }
}
