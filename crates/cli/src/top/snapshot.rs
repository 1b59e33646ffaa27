//! What all classes show at one moment.

use discnice_ledger::policy::{Limits, Resource};
use discnice_sys::time;
use discnice_units::{Moment, Nanos};

use crate::binding::Binding;
use crate::classes::{self, MappedClass};
use crate::commands::member_report;
use crate::running::Running;

/// All classes.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When it was taken.
    pub taken: Moment,
    /// The classes, by name.
    pub classes: Vec<ClassSnapshot>,
}

/// A class at one moment.
#[derive(Debug, Clone)]
pub struct ClassSnapshot {
    /// Its name.
    pub name: String,
    /// Its thresholds.
    pub limits: Limits,
    /// Units per second of each resource over the last second, at the place of its number.
    pub rates: [u64; Resource::COUNT],
    /// Nanoseconds that its members were held since it was made.
    pub waited: Nanos,
    /// What the next call waits for, if more has been charged than is paid for, or all stands.
    pub binding: Option<Binding>,
    /// Its processes.
    pub processes: Vec<ProcessSnapshot>,
}

/// A process of a class at one moment.
#[derive(Debug, Clone)]
pub struct ProcessSnapshot {
    /// Its number.
    pub id: u32,
    /// Its program's name.
    pub name: String,
    /// Bytes read from disks.
    pub read: u64,
    /// Bytes written to disks.
    pub written: u64,
    /// Nanoseconds that it was held.
    pub waited: Nanos,
    /// Why it is not limited, if it is not.
    pub escape: Option<String>,
}

impl Snapshot {
    /// Looks at all classes of this user.
    ///
    /// # Errors
    /// The classes cannot be listed.
    pub fn take() -> anyhow::Result<Self> {
        let found = classes::all()?;
        let taken = time::now();
        let snapshot = Self {
            taken,
            classes: found.iter().map(|one| ClassSnapshot::of(one, taken)).collect(),
        };
        classes::let_go(found);
        Ok(snapshot)
    }
}

impl ClassSnapshot {
    fn of(found: &MappedClass, now: Moment) -> Self {
        let class = found.class;
        let limits = class.limits();
        let running: Vec<Running<'_>> = Running::all(found).collect();
        Self {
            name: found.name(),
            limits,
            rates: Resource::ALL.map(|one| class.meter(one).recent().rate(now)),
            waited: class.waits().1,
            binding: Binding::of(found, running.iter().any(Running::rests)),
            processes: running.iter().map(ProcessSnapshot::of).collect(),
        }
    }

    /// Units per second.
    pub fn rate(&self, resource: Resource) -> u64 {
        self.rates[resource as usize]
    }
}

impl ProcessSnapshot {
    fn of(running: &Running<'_>) -> Self {
        let member = running.member;
        let charged = running.charged();
        Self {
            id: member.process(),
            name: running.name(),
            read: charged.read,
            written: charged.written,
            waited: Nanos(member.books().waited()),
            escape: member_report::escape(running),
        }
    }
}
