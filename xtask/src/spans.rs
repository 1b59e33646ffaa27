//! Parts of a document that are code, and parts that are not.

/// Part of a line that is code, or that is not.
pub struct Span<'a> {
    pub text: &'a str,
    pub in_code: bool,
}

/// Splits a document at its backquotes; numbers lines from 1. A code span may go on in the next
/// line of its paragraph. The text of fenced blocks is not code here: it has comments and headings.
pub fn spans(text: &str) -> Vec<(usize, Span<'_>)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, whole) in text.lines().enumerate() {
        if whole.trim().is_empty() || whole.trim_start().starts_with("```") {
            in_code = false;
            continue;
        }
        for (position, text) in whole.split('`').enumerate() {
            in_code ^= position > 0;
            found.push((index + 1, Span { text, in_code }));
        }
    }
    found
}
