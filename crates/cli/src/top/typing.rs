//! What is typed at the terminal, as keys.
//!
//! Keys are read here and not by crossterm, which reads until a key is complete: one of which only the beginning has come (a
//! slow line, Alt-[) would take the next one with it. Here the beginning is dropped if the rest does not come in time.

use std::io::{self, stdin};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

/// The rest of a key comes within this, also on a slow line.
const LATE: Duration = Duration::from_millis(100);
/// No key that is known has more bytes.
const LONGEST: usize = 16;

const ESCAPE: u8 = 0x1b;

/// What is typed at a terminal.
pub struct Keyboard {
    /// The beginning of a key.
    begun: Vec<u8>,
    /// When something was typed last.
    at: Instant,
}

/// Has reads of the terminal, which is in raw mode, return at once. termios(3)
///
/// # Errors
/// It is none.
pub fn read_without_waiting() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.special_codes[SpecialCodeIndex::VMIN] = 0;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

impl Keyboard {
    /// Nothing has been typed yet.
    pub fn new() -> Self {
        Self { begun: Vec::new(), at: Instant::now() }
    }

    /// Waits until something is typed, but no longer than `time`; returns the keys. `None` if the terminal has hung up.
    pub fn wait(&mut self, time: Duration) -> Option<Vec<KeyEvent>> {
        let (input, time) = (stdin(), Timespec::try_from(time).unwrap_or_default());
        let mut asked = [PollFd::new(&input, PollFlags::IN)];
        // A signal only ends the wait.
        let found = match poll(&mut asked, Some(&time)) {
            Ok(_) => asked[0].revents(),
            Err(_) => PollFlags::empty(),
        };
        if found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return None;
        }
        let mut typed = [0; 1024];
        let length = match found.contains(PollFlags::IN) {
            true => rustix::io::read(&input, &mut typed).unwrap_or(0),
            false => 0,
        };
        Some(self.keys(&typed[..length], Instant::now()))
    }

    /// The keys that what is typed now completes.
    fn keys(&mut self, typed: &[u8], now: Instant) -> Vec<KeyEvent> {
        let mut keys = Vec::new();
        if now.duration_since(self.at) >= LATE {
            // By itself it is a key.
            keys.extend((self.begun == [ESCAPE]).then(|| KeyEvent::from(KeyCode::Esc)));
            self.begun.clear();
        }
        if !typed.is_empty() {
            self.at = now;
        }
        self.begun.extend_from_slice(typed);
        let mut rest = &self.begun[..];
        while let Some((key, length)) = first(rest) {
            keys.extend(key);
            rest = &rest[length..];
        }
        self.begun = rest.to_vec();
        keys
    }
}

/// Returns the first key, if it is one that means anything, and its length; `None` if it is not complete.
fn first(bytes: &[u8]) -> Option<(Option<KeyEvent>, usize)> {
    let (byte, rest) = bytes.split_first()?;
    let code = match *byte {
        ESCAPE => {
            let (code, length) = escaped(rest)?;
            return Some((code.map(KeyEvent::from), length + 1));
        }
        letter @ b' '..=b'~' => KeyCode::Char(char::from(letter)),
        b'\r' | b'\n' => KeyCode::Enter,
        0x08 | 0x7f => KeyCode::Backspace,
        // ^C and ^Z.
        control @ (0x03 | 0x1a) => {
            let code = KeyCode::Char(char::from(control | 0x60));
            return Some((Some(KeyEvent::new(code, KeyModifiers::CONTROL)), 1));
        }
        _ => return Some((None, 1)),
    };
    Some((Some(code.into()), 1))
}

/// Returns the key that the bytes after an ESC are, and how many of them. console_codes(4)
fn escaped(rest: &[u8]) -> Option<(Option<KeyCode>, usize)> {
    match *rest.first()? {
        b'O' => Some((named(&[], *rest.get(1)?), 2)),
        b'[' => {
            let inside = rest.get(1..)?;
            let Some(length) = inside.iter().position(|byte| !(b' '..=b'?').contains(byte)) else {
                return (inside.len() >= LONGEST).then_some((None, rest.len()));
            };
            let (numbers, end) = (&inside[..length], inside[length]);
            match end {
                // A function key of the Linux console.
                b'[' => inside.get(length + 1).map(|_| (None, length + 3)),
                b'@'..=b'~' => Some((named(numbers, end), length + 2)),
                // Another key begins.
                _ => Some((None, length + 1)),
            }
        }
        ESCAPE => Some((Some(KeyCode::Esc), 0)),
        // Alt changes nothing.
        _ => Some((None, 0)),
    }
}

/// A key by the end of its sequence, and the numbers in it, the second of which tells what else is pressed.
fn named(numbers: &[u8], end: u8) -> Option<KeyCode> {
    let number = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (end, number) {
        (b'A', _) => KeyCode::Up,
        (b'B', _) => KeyCode::Down,
        (b'H', _) | (b'~', b"1" | b"7") => KeyCode::Home,
        (b'F', _) | (b'~', b"4" | b"8") => KeyCode::End,
        (b'~', b"5") => KeyCode::PageUp,
        (b'~', b"6") => KeyCode::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that parts of what is typed are, each so many milliseconds after the one before it, and then nothing.
    fn keys(parts: &[(u64, &[u8])]) -> Vec<KeyCode> {
        let mut keyboard = Keyboard::new();
        let mut now = keyboard.at;
        let mut found = Vec::new();
        for (after, typed) in parts.iter().chain(&[(500, &b""[..])]) {
            now += Duration::from_millis(*after);
            found.extend(keyboard.keys(typed, now).into_iter().map(|key| key.code));
        }
        assert!(keyboard.begun.is_empty());
        found
    }

    #[test]
    fn keys_of_all_terminals_are_known() {
        use KeyCode::{Backspace, Char, Down, End, Enter, Esc, Home, PageDown, PageUp, Up};
        for (typed, meant) in [
            (&b"q~ "[..], &[Char('q'), Char('~'), Char(' ')][..]),
            (b"\x1b[A\x1bOB\x1b[1;5A", &[Up, Down, Up]),
            (b"\x1b[H\x1b[1~\x1b[7~\x1bOH", &[Home; 4]),
            (b"\x1b[F\x1b[4~\x1b[8~\x1bOF", &[End; 4]),
            (b"\x1b[5~\x1b[6~\x1b[6;2~", &[PageUp, PageDown, PageDown]),
            (b"\r\n\x7f\x08", &[Enter, Enter, Backspace, Backspace]),
            (b"\x1b", &[Esc]),
            (b"\x1b\x1b", &[Esc, Esc]),
            (b"\x1b\x1b[A", &[Esc, Up]),
            (b"\x1b[[Bk\x1b[15~j\x1b[Cl", &[Char('k'), Char('j'), Char('l')]),
            (b"\x1bq", &[Char('q')]),
            ("\u{e4}\u{540d}\t\0x".as_bytes(), &[Char('x')]),
            (b"\x1b[1\x1b[B", &[Down]),
            (b"\x1b[1111111111111111111", &[]),
        ] {
            assert_eq!(keys(&[(0, typed)]), meant, "{}", typed.escape_ascii());
        }
        let [interrupt, stop] = [3, 26].map(|byte| first(&[byte]).unwrap().0.unwrap());
        assert_eq!([interrupt.code, stop.code], [Char('c'), Char('z')]);
        assert_eq!([interrupt, stop].map(|key| key.modifiers), [KeyModifiers::CONTROL; 2]);
    }

    #[test]
    fn half_a_key_is_awaited_for_a_moment() {
        use KeyCode::{Char, Esc, PageDown};
        assert_eq!(keys(&[(0, b"\x1b"), (30, b"["), (30, b"6"), (30, b"~")]), [PageDown]);
        for half in [&b"\x1b["[..], b"\x1bO", b"\x1b[1;", b"\xc3"] {
            assert_eq!(keys(&[(0, half), (200, b"q")]), [Char('q')], "{}", half.escape_ascii());
        }
        assert_eq!(keys(&[(0, b"\x1b"), (200, b"q")]), [Esc, Char('q')]);
    }
}
