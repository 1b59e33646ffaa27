//! Progress bars, as programs draw them on a terminal or into a log.
//!
//! Two ways are known: a number before a per cent sign, which starts anew with each bar, and the sequence that tells the
//! terminal itself (`ESC ] 9 ; 4 ; STATE ; PERCENT`, of ConEmu, Windows Terminal, Ghostty and others). One that uses the
//! second is judged by it alone.

/// Bytes of a line that are kept, at most.
const LONGEST_LINE: usize = 256;
/// Bytes of a sequence for the terminal that are kept, at most.
const LONGEST_COMMAND: usize = 32;
/// Bars that are told apart, by the letters before their numbers.
const BARS: usize = 64;
/// How the sequence begins that tells of progress.
const PROGRESS: &str = "9;4;";

/// Where in its output the program is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind an escape character.
    Escape,
    /// In a sequence that moves the cursor, or colours text.
    Control,
    /// In a text for the terminal.
    Command,
    /// Behind an escape character in such a text.
    CommandEnd,
}

/// Adds up what progress bars advance.
#[derive(Debug, Default)]
pub(crate) struct Bar {
    state: State,
    /// What stands in this line, or in the text for the terminal.
    line: Vec<u8>,
    command: Vec<u8>,
    /// The last number of each bar.
    bars: Vec<(Vec<u8>, f64)>,
    /// The program tells the terminal itself.
    is_told: bool,
    value: f64,
}

impl Bar {
    /// Reads what was printed.
    pub(crate) fn feed(&mut self, printed: &[u8]) {
        printed.iter().for_each(|byte| self.step(*byte));
    }

    /// Per cent by which all bars have advanced so far.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Text, 0x1b) => State::Escape,
            (State::Text, _) => self.text(byte),
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => {
                self.command.clear();
                if byte == b']' { State::Command } else { self.other_command() }
            }
            (State::Escape, _) => State::Text,
            (State::Control, b'A'..=b'B' | b'D'..=b'J' | b'd' | b'f') => {
                // The cursor stands elsewhere.
                self.line.clear();
                State::Text
            }
            (State::Control, 0x40..=0x7e) => State::Text,
            (State::Control, _) => State::Control,
            (State::Command, 0x1b) => State::CommandEnd,
            (State::Command, 0x07) | (State::CommandEnd, _) => self.command(),
            (State::Command, _) => {
                if self.command.len() < LONGEST_COMMAND {
                    self.command.push(byte);
                }
                State::Command
            }
        };
    }

    /// A text for the terminal begins that tells of no progress.
    fn other_command(&mut self) -> State {
        self.command.push(b'?');
        State::Command
    }

    fn text(&mut self, byte: u8) -> State {
        match byte {
            b'\r' | b'\n' => self.line.clear(),
            b'%' if !self.is_told => {
                if let Some((name, per_cent)) = named(&self.line) {
                    self.advance(name, per_cent);
                }
            }
            _ => {}
        }
        if self.line.len() >= LONGEST_LINE {
            self.line.clear();
        }
        if !matches!(byte, b'\r' | b'\n') {
            self.line.push(byte);
        }
        State::Text
    }

    fn command(&mut self) -> State {
        let text = std::str::from_utf8(&self.command).unwrap_or_default();
        if let Some((state, per_cent)) =
            text.strip_prefix(PROGRESS).and_then(|rest| rest.split_once(';'))
        {
            self.is_told = true;
            // Without a number (a state of 0 or 3) there is none to be had.
            if let Ok(per_cent) = per_cent.parse()
                && !matches!(state, "0" | "3")
            {
                self.advance(vec![0x1b], per_cent);
            }
        }
        State::Text
    }

    fn advance(&mut self, name: Vec<u8>, per_cent: f64) {
        if !(0.0..=100.0).contains(&per_cent) {
            return;
        }
        match self.bars.iter_mut().find(|(known, _)| *known == name) {
            // One that is smaller is of another bar, which began at zero.
            Some((_, last)) => {
                self.value += if per_cent < *last { per_cent } else { per_cent - *last };
                *last = per_cent;
            }
            None => {
                if self.bars.len() == BARS {
                    self.bars.remove(0);
                }
                self.bars.push((name, per_cent));
            }
        }
    }
}

/// The number at the end of a line, and the letters before it.
fn named(line: &[u8]) -> Option<(Vec<u8>, f64)> {
    let line = line.strip_suffix(b" ").unwrap_or(line);
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let digits = line.iter().rev().take_while(|byte| is_number(byte)).count();
    let (before, number) = line.split_at(line.len() - digits);
    let per_cent = std::str::from_utf8(number).ok()?.parse().ok()?;
    let letters = before.iter().filter(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    Some((letters.copied().collect(), per_cent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(printed: &str) -> f64 {
        let mut whole = Bar::default();
        whole.feed(printed.as_bytes());
        let mut by_bytes = Bar::default();
        printed.bytes().for_each(|byte| by_bytes.feed(&[byte]));
        assert_eq!(whole.value(), by_bytes.value(), "{printed:?}");
        whole.value()
    }

    //= ms-manners/11-progress-bar
    #[test]
    fn bars_of_programs_are_read() {
        for (printed, advanced) in [
            // As rsync --info=progress2, curl -#, tqdm, wget, apt, and two bars in turn draw theirs.
            ("\r    32,768   0%    0.00kB/s\r 9,437,184  45%   10.1MB/s\r 20,971,520 100%", 100.0),
            ("\r##   3.0%\r####   12.5%\r######   20.5%", 17.5),
            ("  0%|          | 0/50\r 10%|█         | 5/50\r 30%|███       | 15/50", 30.0),
            ("data    10%[=>   ] 1.0M\rdata    60%[====>] 6.0M", 50.0),
            (
                "\x1b7\x1b[24;0f\x1b[42mProgress: [  5%]\x1b[49m\x1b8\x1b[24;0fProgress: [ 25%]",
                20.0,
            ),
            ("one 10%\ntwo 50%\x1b[2A\none 12%\ntwo 53%", 5.0),
            ("file  0%\rfile 100%\nfile   0%\rfile 40%", 140.0),
            ("\x1b]9;4;1;10\x07 90% \x1b]9;4;1;35\x1b\\ 99%\x1b]9;4;3;\x07\x1b]9;4;0\x07", 25.0),
            ("\x1b]0;title 50%\x07\x1b]8;;http://a/%20\x1b\\\x1bPq 9% \x1b\\", 0.0),
            ("% and 101% and 5.5.5% and %%", 0.0),
            ("\x1b]9;4;1;-5\x07\x1b]9;4;1;nan\x07\x1b]9;4;1;1e9\x07\x1b]9;4", 0.0),
        ] {
            assert_eq!(value(printed), advanced, "{printed:?}");
        }
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut bar = Bar::default();
        for label in 0..10_000_u32 {
            let name: String = label.to_string().bytes().map(|b| char::from(b + 49)).collect();
            bar.feed(format!("{name} 5%\n").as_bytes());
        }
        bar.feed(&[b'x'; 10_000]);
        bar.feed(b"\x1b]");
        bar.feed(&[b'x'; 10_000]);
        assert!(bar.bars.len() == BARS && bar.line.len() <= LONGEST_LINE);
        assert!(bar.command.len() <= LONGEST_COMMAND);
    }
}
