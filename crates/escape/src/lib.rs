//! Text of unknown origin made safe to show. Names of classes, programs and files are bytes chosen
//! by any user; a terminal obeys some of them, a browser others.
//!
//! - [`Foreign`], [`visible`]: for people, on a terminal or in a log;
//! - [`json`]: JSON that has been made already;
//! - [`markup`]: text in HTML, SVG and XML, attributes included;
//! - [`label`]: the value of a label in OpenMetrics, before the quoting that the format wants.
//!
//! What is not a printed character is replaced by the escape that Rust has for it: `\n`, `\u{1b}`, `\u{202e}`, and
//! `\xff` for a byte that is no UTF-8. Printed characters stay as they are, backslashes too: an escape tells a
//! person that something is there, not a program what it was.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use unicode_width::UnicodeWidthChar;

/// Shows bytes of unknown origin as one line. Width pads and precision cuts by columns of a terminal:
/// `{:<16}`, `{:.16}`.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a>(&'a [u8]);

impl<'a> Foreign<'a> {
    /// Text.
    #[must_use]
    pub const fn text(text: &'a str) -> Self {
        Self(text.as_bytes())
    }

    /// Bytes that are probably text.
    #[must_use]
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// A word of a command line or of the environment.
    #[must_use]
    pub fn word(word: &'a OsStr) -> Self {
        Self(word.as_bytes())
    }

    /// The path of a file.
    #[must_use]
    pub fn path(path: &'a Path) -> Self {
        Self::word(path.as_os_str())
    }

    /// Returns true if it is shown as it is.
    #[must_use]
    pub fn is_plain(self) -> bool {
        str::from_utf8(self.0).is_ok_and(is_plain)
    }

    fn escaped(self) -> Cow<'a, str> {
        let mut chunks = self.0.utf8_chunks();
        let Some(first) = chunks.next() else { return Cow::Borrowed("") };
        if first.valid().len() == self.0.len() {
            return visible(first.valid());
        }
        let mut shown = String::new();
        for chunk in std::iter::once(first).chain(chunks) {
            shown.push_str(&visible(chunk.valid()));
            for byte in chunk.invalid() {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\x{byte:02x}");
            }
        }
        Cow::Owned(shown)
    }
}

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.escaped();
        let (shown, width) = cut(&shown, f.precision().unwrap_or(usize::MAX));
        let missing = f.width().map_or(0, |wanted| wanted.saturating_sub(width));
        let before = match f.align() {
            Some(fmt::Alignment::Right) => missing,
            Some(fmt::Alignment::Center) => missing / 2,
            Some(fmt::Alignment::Left) | None => 0,
        };
        write!(f, "{:before$}{shown}{:after$}", "", "", after = missing - before)
    }
}

/// Returns as much of plain text as fits into so many columns, and the columns that it takes.
fn cut(text: &str, columns: usize) -> (&str, usize) {
    let mut taken = 0;
    for (place, c) in text.char_indices() {
        let width = c.width().unwrap_or(0);
        if taken + width > columns {
            return (&text[..place], taken);
        }
        taken += width;
    }
    (text, taken)
}

/// Text as one line of printed characters.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    replace(text, is_printed, escape)
}

/// Text for the value of a label.
#[must_use]
pub fn label(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// JSON that means the same, of printed characters and line ends.
#[must_use]
pub fn json(json: &str) -> Cow<'_, str> {
    let stays = |c| matches!(c, '\n' | '\r' | '\t') || is_printed(c);
    replace(json, stays, |c, shown| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

/// Text for an element or an attribute of HTML, SVG or XML.
#[must_use]
pub fn markup(text: &str) -> Cow<'_, str> {
    let stays = |c| !matches!(c, '&' | '<' | '>' | '"' | '\'') && is_printed(c);
    replace(text, stays, |c, shown| match c {
        '&' => shown.push_str("&amp;"),
        '<' => shown.push_str("&lt;"),
        '>' => shown.push_str("&gt;"),
        '"' => shown.push_str("&quot;"),
        '\'' => shown.push_str("&#39;"),
        other => escape(other, shown),
    })
}

/// Writes each character that does not stay by `escape`.
fn replace(
    text: &str,
    stays: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let Some(first) = text.find(|c| !stays(c)) else { return Cow::Borrowed(text) };
    let mut shown = text[..first].to_owned();
    for c in text[first..].chars() {
        if stays(c) { shown.push(c) } else { escape(c, &mut shown) }
    }
    Cow::Owned(shown)
}

fn escape(c: char, shown: &mut String) {
    if is_hidden(c) { shown.extend(c.escape_unicode()) } else { shown.extend(c.escape_debug()) }
}

fn is_plain(text: &str) -> bool {
    text.chars().all(is_printed)
}

/// Returns true for letters and marks that leave no trace on a screen, so that two names may look alike: joiners, fillers and
/// variation selectors (`Default_Ignorable_Code_Point` of Unicode), and the empty pattern of Braille.
const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Returns true if a terminal draws it and does nothing else. That excludes control characters,
/// marks of direction, characters that are not seen, spaces that are no space, and what Unicode leaves
/// undefined.
fn is_printed(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    if is_hidden(c) {
        return false;
    }
    // The standard library shows what it calls printable as it is, but an accent only behind another character.
    let mut pair = [0; 8];
    pair[0] = b'e';
    let length = 1 + c.encode_utf8(&mut pair[1..]).len();
    str::from_utf8(&pair[..length]).is_ok_and(|pair| pair.escape_debug().nth(1) == Some(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\u{1b}]0;b\u{7}\r\n\t\0\u{7f}\u{9b}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}z";

    #[test]
    fn what_is_printed_stays() {
        for plain in
            ["", "it's a \"name\" \\ {}", "näme", "e\u{301}", "名前", "🦀", "Привет", "שלום"]
        {
            assert_eq!(visible(plain), plain);
            assert!(matches!(visible(plain), Cow::Borrowed(_)));
            assert!(Foreign::text(plain).is_plain());
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let shown =
            r"a\u{1b}]0;b\u{7}\r\n\t\0\u{7f}\u{9b}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}z";
        assert_eq!(visible(HOSTILE), shown);
        assert_eq!(Foreign::text(HOSTILE).to_string(), shown);
        assert!(!Foreign::text(HOSTILE).is_plain());
        assert_eq!(visible("\u{a0}\u{2028}\u{ad}"), r"\u{a0}\u{2028}\u{ad}");
    }

    #[test]
    fn every_character_that_is_shown_is_seen() {
        for hidden in [
            '\u{34f}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180f}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{ffa0}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            let shown = format!("a\\u{{{:x}}}b", u32::from(hidden));
            assert_eq!(visible(&format!("a{hidden}b")), shown);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown() {
        assert_eq!(
            Foreign::bytes(b"a\xff\x9b31m\xc3\xa4\xe2\x80").to_string(),
            r"a\xff\x9b31mä\xe2\x80"
        );
        assert_eq!(Foreign::bytes(b"").to_string(), "");
        assert!(!Foreign::bytes(b"\xff").is_plain());
    }

    #[test]
    fn columns_are_those_of_a_terminal() {
        assert_eq!(format!("[{:<6}]", Foreign::text("名前")), "[名前  ]");
        assert_eq!(format!("[{:>6}]", Foreign::text("e\u{301}\n")), "[   e\u{301}\\n]");
        assert_eq!(format!("[{:^4}]", Foreign::text("ab")), "[ ab ]");
        assert_eq!(format!("[{:.3}]", Foreign::text("名前")), "[名]");
        assert_eq!(format!("[{:3.2}]", Foreign::text("abc")), "[ab ]");
        assert_eq!(format!("[{:2}]", Foreign::text("abc")), "[abc]");
    }

    #[test]
    fn json_means_the_same() {
        let made = "{\n  \"name\": \"a\\u001b\\n\u{7f}\u{9b}\u{202e}\u{e0041}\"\n}";
        let shown = json(made);
        let tame = "{\n  \"name\": \"a\\u001b\\n\\u007f\\u009b\\u202e\\udb40\\udc41\"\n}";
        assert_eq!(shown, tame);
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(markup("<a href='\"&\u{1b}\n"), "&lt;a href=&#39;&quot;&amp;\\u{1b}\\n");
        assert_eq!(markup("plain"), "plain");
    }

    #[test]
    fn every_character_is_either_printed_or_ascii_text() {
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            let shown = visible(&text);
            let same = *shown == *text;
            assert!(same || shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{c:?}");
            assert!(!(same && c.is_control()), "{c:?}");
        }
    }
}
