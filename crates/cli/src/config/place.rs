//! Where in a file something stands.

use std::ops::Range;

/// Where in a file something is wrong, and what.
pub(super) type Wrong = (Range<usize>, String);

/// Line and column of a byte, counted from 1, in characters.
pub(super) fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
