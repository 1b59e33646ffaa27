//! Whether the progress that a metric tells is the job's (MS Manners, section 3: progress is believed).
//!
//! What a program does shows in the kernel's account of it: to write a line or to answer a request it has to compute or to move
//! bytes. Progress that goes on while the account stands still is another program's, or none.

use discnice_processes::tree::Tree;

use crate::control::metric::Source;
use crate::control::metric::account::{Account, What};

/// Looks in a row at which progress was told and nothing done. A log is followed with a delay, and the account has
/// ticks of 10 ms.
const LOOKS: u32 = 5;

/// What was told and done so far.
pub(crate) struct Claimed {
    account: [Account; 2],
    done: f64,
    told: Vec<f64>,
    idle: u32,
}

impl Claimed {
    pub(crate) fn new() -> Self {
        let account = [Account::new(What::Cpu), Account::new(What::Bytes)];
        Self { account, done: 0.0, told: Vec::new(), idle: 0 }
    }

    /// Compares the metrics, which were read just now, with the account; returns which one rises without the job's
    /// doing, once that is known.
    pub(crate) fn look(&mut self, values: &[f64], tree: &Tree) -> Option<usize> {
        let before = std::mem::replace(&mut self.told, values.to_vec());
        let risen = values.iter().zip(&before).position(|(now, before)| now > before);
        let mut done = 0.0;
        for account in &mut self.account {
            // Another user's cannot be read.
            let Ok(number) = account.read(tree) else { return None };
            done += number;
        }
        let worked = std::mem::replace(&mut self.done, done) < done;
        match risen {
            _ if worked => self.idle = 0,
            Some(_) => self.idle += 1,
            None => {}
        }
        risen.filter(|_| self.idle == LOOKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_processes::tree::Process;
    use discnice_sys::procfs;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    //= ms-manners/3-false-progress
    #[test]
    fn progress_while_nothing_is_done_is_another_programs() {
        let mut cat =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, from) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        let mut from = BufReader::new(from);
        let id = cat.id();
        let mut tree = Tree::new(&[Process::find(id).unwrap()]);
        let mut claimed = Claimed::new();
        let mut told = 0.0;
        let mut look = |works: bool| {
            if works {
                writeln!(to, "line").unwrap();
                from.read_line(&mut String::new()).unwrap();
                // Its call is accounted once it waits for the next line.
                while procfs::stat(id).is_some_and(|stat| stat.state != b'S') {
                    std::thread::yield_now();
                }
            }
            told += 1.0;
            tree.update();
            claimed.look(&[1.0, told], &tree)
        };
        for _ in 0..2 * LOOKS {
            assert_eq!(look(true), None);
        }
        let idle: Vec<Option<usize>> = (0..LOOKS).map(|_| look(false)).collect();
        assert_eq!((idle[0], idle[3], idle[4]), (None, None, Some(1)), "{idle:?}");
        assert_eq!(look(false), None, "told once");
        assert_eq!(look(true), None);
        cat.kill().unwrap();
        cat.wait().unwrap();
    }
}
