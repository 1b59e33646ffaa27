//! Stops a whole job and continues it.

use std::io;

use crate::guardian::Guardian;
use crate::tree::{Process, Tree};

/// Rounds after which a job that forks faster than it can be stopped is let go.
const ROUNDS: u32 = 20;

/// Stops every process of `tree`, also those that are born meanwhile.
///
/// # Errors
/// Where a process may not be stopped (another user's), or the job forks faster than it can be
/// stopped. Everything has been continued then.
pub fn stop(guardian: &mut Guardian, tree: &mut Tree) -> io::Result<()> {
    for _ in 0..ROUNDS {
        let mut new = false;
        for member in tree.iter() {
            match guardian.stop(Process::of(member)) {
                Ok(stopped) => new |= stopped,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    guardian.resume();
                    return Err(error);
                }
            }
        }
        if !new {
            return Ok(());
        }
        tree.refresh();
    }
    guardian.resume();
    Err(io::Error::other("the job starts processes faster than they can be stopped"))
}
