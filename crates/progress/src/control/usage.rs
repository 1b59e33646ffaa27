//! What a job and its regulator use of the machine, which is not what others do to it.

use discnice_processes::tree::Tree;

use crate::control::metric::Source;
use crate::control::metric::account::{Account, What};
use crate::testpoint::arbiter::Seat;
use crate::testpoint::watch::Usage;

/// What they have used, and how much of it all polite jobs know.
pub(crate) struct Used {
    cpu: Account,
    read: Account,
    written: Account,
    published: Usage,
}

impl Used {
    /// Starts to count with what is done from now on.
    pub(crate) fn new(tree: &Tree) -> Self {
        let mut used = Self {
            cpu: Account::new(What::Cpu),
            read: Account::new(What::Read),
            written: Account::new(What::Written),
            published: Usage::default(),
        };
        used.published = used.now(tree);
        used
    }

    fn now(&mut self, tree: &Tree) -> Usage {
        let own = Usage::own();
        // Another user's account cannot be read; then the job's own traffic looks like others'.
        Usage {
            cpu: own.cpu + self.cpu.read(tree).unwrap_or(0.0),
            read: own.read + self.read.read(tree).unwrap_or(0.0),
            written: own.written + self.written.read(tree).unwrap_or(0.0),
        }
    }

    /// What this job used so far; with a seat, what all polite jobs together did.
    pub(crate) fn total(&mut self, tree: &Tree, seat: Option<&Seat>) -> Usage {
        let now = self.now(tree);
        let Some(seat) = seat else { return now };
        let used = now.since(self.published);
        self.published = now;
        seat.publish(used)
    }
}
