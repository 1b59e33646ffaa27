//! Stops a process by `cgroup.freeze`. Exists for `eval/benches/kills_held.py --mechanism freezer`, where stop signals would show.
//!
//! It is used where ptrace(2) is not permitted but the process's cgroup is delegated to us: no
//! signal, and nothing that the parent or a shell could see but another line in `/proc/PID/cgroup`.
//! Documentation/admin-guide/cgroup-v2.rst
//!
//! The process is moved into a child cgroup of its own, `discnice-PID-STARTTIME`, and stays there between holds: each move takes a
//! lock that all processes of the system share. What it has born before stays where it was; what it bears later is born
//! there and stands with it, until that is held itself and gets a cgroup of its own beside.
//!
//! A cgroup is frozen as a whole: threads that sleep are left alone only if all of the process sleeps.
//!
//! SIGKILL ends a frozen process; all other signals wait until it is thawed. If we are killed, a
//! helper process thaws everything and removes the cgroups. Moving, in the first press of all and
//! at the end of the hold, may wait some milliseconds for the lock; nothing else does.

use discnice_ledger::outside::Mechanism;
use discnice_processes::tree::Process;

use super::cgroup::{self, Child, Home};
use super::hold::{Grip, Hold, Refused};
use super::thawer::Thawer;
use crate::process;

/// A hold by `cgroup.freeze`.
#[derive(Debug)]
pub struct Freezer {
    process: Process,
    thawer: Thawer,
    place: DaemonFiles,
    frozen: bool,
}

impl Freezer {
    /// Moves the process into a cgroup of its own; nothing is held yet. `None` where that is not possible.
    #[must_use]
    pub fn find(process: Process, thawer: Thawer) -> Option<Self> {
        let place = DaemonFiles::make(process, &thawer)?;
        Some(Self { process, thawer, place, frozen: false })
    }

    /// Whether one of its threads runs, or waits for a disk or its like.
    fn is_awake(&self) -> bool {
        process::has_thread_in(self.process.id(), b"RD")
    }

    /// Returns true if the process may be frozen: not if it has ended, or another program has
    /// stopped it.
    fn may_be_frozen(&self) -> Result<bool, Refused> {
        let Some(stat) = self.process.stat() else { return Ok(false) };
        if process::tracer(self.process.id().cast_signed()).is_some() {
            return Err(Refused::Traced);
        }
        Ok(stat.state != b'T')
    }

    /// Begins to freeze the process. Another program may have moved it since it was held last.
    fn begin(&mut self) -> Result<(), Refused> {
        if !cgroup::is_in(self.process.id(), &self.place.name) {
            self.place.leave();
            self.place = DaemonFiles::make(self.process, &self.thawer).ok_or(Refused::Forbidden)?;
        }
        self.thawer.check().map_err(|_| Refused::Forbidden)?;
        self.frozen = true;
        Ok(())
    }

    /// Tells if all of the process is frozen; freezes it again if another program has thawed it.
    fn stand(&mut self) -> Grip {
        let child = &self.place.child;
        let stands = child.is_frozen().and_then(|frozen| {
            if frozen {
                return Ok(true);
            }
            child.freeze(true)?;
            child.is_frozen()
        });
        match stands {
            Ok(false) => Grip::Loose,
            Ok(true) if cgroup::is_in(self.process.id(), &self.place.name) => Grip::Firm,
            // Another program has moved the process elsewhere, or removed the cgroup. The next
            // press begins anew.
            _ => {
                self.release();
                Grip::Loose
            }
        }
    }
}

impl Hold for Freezer {
    fn mechanism(&self) -> Mechanism {
        Mechanism::CgroupFreezer
    }

    fn press(&mut self) -> Result<Grip, Refused> {
        if self.frozen || self.is_awake() { self.press_all() } else { Ok(Grip::Loose) }
    }

    fn press_all(&mut self) -> Result<Grip, Refused> {
        if !self.frozen {
            if !self.may_be_frozen()? {
                return Ok(Grip::Loose);
            }
            self.begin()?;
        }
        Ok(self.stand())
    }

    fn tend(&mut self) {
        // A process that is thawed here goes on by another mechanism, if by any.
        if self.frozen && self.thawer.check().is_err() {
            self.release();
        }
    }

    fn release(&mut self) -> bool {
        if std::mem::take(&mut self.frozen) {
            // It fails if the cgroup has been removed, and nothing is in it then.
            let _ = self.place.child.freeze(false);
        }
        true
    }
}

/// The cgroup of one process; removed at the end.
#[derive(Debug)]
struct DaemonFiles {
    home: Home,
    name: String,
    child: Child,
    thawer: Thawer,
    left: bool,
}

impl DaemonFiles {
    fn make(process: Process, thawer: &Thawer) -> Option<Self> {
        let home = Home::of(process.id())?;
        let name = cgroup::name(process);
        let path = home.path.join(&name);
        thawer.expect(&path).ok()?;
        let Ok(child) = home.make(&name) else {
            thawer.forget(&path);
            return None;
        };
        let place = Self { home, name, child, thawer: thawer.clone(), left: false };
        // It, not another one that has its number now.
        place.child.take(process.id()).ok().filter(|()| process.stat().is_some()).map(|()| place)
    }

    /// Lets all go back where they were, and removes the cgroup.
    fn leave(&mut self) {
        if std::mem::replace(&mut self.left, true) {
            return;
        }
        let path = self.home.path.join(&self.name);
        match self.home.tidy(&self.name) {
            Ok(()) => self.thawer.forget(&path),
            Err(_) => self.thawer.leave(&path),
        }
    }
}

impl Drop for DaemonFiles {
    fn drop(&mut self) {
        self.leave();
    }
}
