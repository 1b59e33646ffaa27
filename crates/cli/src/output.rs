//! What the program says. Nothing else writes to standard output or standard error, for two reasons:
//! - `println!` and `eprintln!` panic when their stream is full or closed;
//! - what stands in a line may have been chosen by others (names of classes, programs and files),
//!   and a terminal obeys some characters. Lines for people have none of those, a line end
//!   included, however they are formatted: [`say!`], [`tell!`], [`Lines`]. JSON has them escaped:
//!   [`json`].
//!
//! What a user redirects is the same as what is shown. Only what is made for programs is written byte by byte:
//! the bytes and names of `order`, by [`bytes`].

#![allow(clippy::disallowed_methods, reason = "the streams are written here and nowhere else")]

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::StyledStr;
use discnice_escape::visible;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// Writes a line to standard output; `?` it: a full disk is an error, and a reader that has seen
/// enough (`| head`) ends the program quietly.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        let mut lines = $crate::output::Lines::default();
        lines.push(format_args!($($text)*));
        lines.say()
    }};
}
pub use say;

/// Writes a line to standard error. If that fails it cannot be reported.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::output::tell_line(format_args!($($text)*))
    };
}
pub use tell;

/// Lines that are written at once: there may be thousands.
#[derive(Debug, Default)]
pub struct Lines(String);

impl Lines {
    /// Adds one line, whatever stands in it.
    pub fn push(&mut self, line: fmt::Arguments<'_>) {
        self.0.push_str(&visible(&line.to_string()));
        self.0.push('\n');
    }

    /// Adds one line for programs: two words with a tab between.
    pub fn push_pair(&mut self, first: &str, second: &str) {
        self.0 += &format!("{}\t{}\n", visible(first), visible(second));
    }

    /// The text of all of them.
    #[cfg(test)]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Writes them to standard output.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn say(self) -> Result<(), Unsaid> {
        write(&self.0)
    }
}

/// Writes help to standard output, in colours if that is a terminal which shows them and `NO_COLOR` is not set.
///
/// # Errors
/// Standard output cannot be written.
pub fn styled(text: &StyledStr) -> Result<(), Unsaid> {
    write!(anstream::stdout(), "{}", text.ansi()).map_err(Unsaid)
}

/// Writes JSON to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub fn json(json: &str) -> Result<(), Unsaid> {
    json_part(&format!("{json}\n"))
}

/// Writes a part of JSON to standard output, of which more is to come.
///
/// # Errors
/// Standard output cannot be written.
pub fn json_part(json: &str) -> Result<(), Unsaid> {
    write(&discnice_escape::json(json))
}

/// Writes metrics, with labels that have been made visible, to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub fn metrics(text: &str) -> Result<(), Unsaid> {
    write(text)
}

fn write(text: &str) -> Result<(), Unsaid> {
    io::stdout().write_all(text.as_bytes()).map_err(Unsaid)
}

/// Writes a line to standard error, by [`tell!`].
pub fn tell_line(line: fmt::Arguments<'_>) {
    let erased = if IS_LIVE.swap(false, Ordering::Relaxed) { ERASE } else { "" };
    let line = format!("{erased}{}\n", visible(&without_numbers(&line.to_string())));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A line without the numbers that the standard library adds to the kernel's reasons, `No such file or directory (os
/// error 2)`: they are in no manual.
pub fn without_numbers(line: &str) -> String {
    const NUMBER: &str = " (os error ";
    let mut parts = line.split(NUMBER);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match rest.strip_prefix(')') {
            Some(rest) if rest.len() + 1 < part.len() => shown.push_str(rest),
            _ => shown.extend([NUMBER, part]),
        }
    }
    shown
}

/// A number of things in words: `1 file`, `2 files`.
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Goes to the beginning of a terminal's line, and removes what stands there.
const ERASE: &str = "\r\x1b[K";

/// A terminal that does not tell its width.
const COLUMNS: usize = 80;

/// Whether the terminal at standard error shows a line that the next one takes the place of.
static IS_LIVE: AtomicBool = AtomicBool::new(false);

/// Shows a line at the terminal at standard error until the next one is shown or told, or none: what a command writes
/// meanwhile begins at the beginning of it.
pub fn show_live(line: &str) {
    if IS_LIVE.swap(!line.is_empty(), Ordering::Relaxed) || !line.is_empty() {
        let end = if line.is_empty() { "" } else { "\r" };
        let _ = write!(io::stderr(), "{ERASE}{}{end}", visible(line));
    }
}

/// Replaces the line that the terminal at standard error shows.
pub fn replace_line(line: &str) {
    let _ = write!(io::stderr(), "\r\x1b[K{}", visible(line));
}

/// Standard output for bytes that are the result. Not the standard library's own handle, which looks for the ends
/// of lines.
///
/// # Errors
/// No descriptor is left.
pub fn bytes() -> Result<BufWriter<File>, Unsaid> {
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(Unsaid)?;
    Ok(BufWriter::new(File::from(output)))
}

/// Whether standard output is a terminal.
#[must_use]
pub fn is_for_people() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
#[must_use]
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// The width of the terminal at standard error; `None` where this process is not in the foreground of it, so that others
/// may write there.
#[must_use]
pub fn columns_in_front() -> Option<usize> {
    let in_front = tcgetpgrp(io::stderr()).is_ok_and(|front| front == getpgrp());
    let width = || tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    // One that does not tell it has as many as most.
    in_front.then(|| Some(width()).filter(|width| *width > 0).unwrap_or(COLUMNS))
}

/// Standard output could not be written.
#[derive(Debug)]
pub struct Unsaid(pub io::Error);

impl Unsaid {
    /// The reader closed the pipe.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot write to standard output: {}; redirect it to another file or pipe",
            self.0
        )
    }
}

impl std::error::Error for Unsaid {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_reasons_are_left_out() {
        let error = io::Error::from_raw_os_error(2).to_string();
        assert_eq!(without_numbers(&format!("a: {error}; b")), "a: No such file or directory; b");
        for kept in ["", "plain", "a (os error ", "a (os error x)", "a (os error )", "(os error 2)"]
        {
            assert_eq!(without_numbers(kept), kept);
        }
    }

    #[test]
    fn one_is_not_several() {
        let files = |count: usize| counted(count, "file", "files");
        assert_eq!([files(0), files(1), files(2)], ["0 files", "1 file", "2 files"]);
    }

    #[test]
    fn a_line_is_one_line_whatever_stands_in_it() {
        let mut lines = Lines::default();
        lines.push(format_args!("class {}", "a\u{1b}[2J\nforged \u{202e}"));
        lines.push(format_args!(""));
        assert_eq!(lines.0, "class a\\u{1b}[2J\\nforged \\u{202e}\n\n");
    }
}
