//! Classes that share a budget with those of other machines, as commands see them.

use std::thread;
use std::time::{Duration, Instant};

use discnice_fleet::fault::{self, report};
use discnice_ledger::Class;
use discnice_sys::{futex, time};
use discnice_units::{Moment, Nanos, Rate};
use discnice_watcher::daemon::client::Confirmation;
use serde::Serialize;

use crate::classes::MappedClass;
use crate::config::ConfigFiles;
use crate::watching;

/// A command that starts in such a class waits for its first lease so long.
const FIRST: Duration = Duration::from_millis(1500);
const APART: Duration = Duration::from_millis(2);

/// What a class has of a budget that it shares, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Share {
    /// Bytes a second that it may move now.
    allowed: u64,
    /// Bytes a second of all machines together; `null` before a server told.
    cap: Option<u64>,
    /// How long its lease lasts; zero while it has its floor only.
    lease_seconds: f64,
    /// What keeps it from having a lease, in words; `null` with one.
    problem: Option<&'static str>,
}

impl Share {
    /// What the class has now; `None` if its budget is its own.
    pub(crate) fn of(class: &Class, now: Moment) -> Option<Self> {
        let fleet = class.fleet();
        let allowed = fleet.allowed(now)?.get();
        let lease = fleet.lease_left(now);
        // The last report is of a process that is gone, or has been stopped.
        let is_late = lease == Nanos(0) && fleet.report() == report::LEASED;
        let problem =
            if is_late { Some("has lost its lease") } else { fault::told(fleet.report()) };
        let cap = fleet.cap().map(Rate::get);
        Some(Self { allowed, cap, lease_seconds: lease.as_secs_f64(), problem })
    }

    /// What it may move, of how much.
    pub(crate) fn rate(&self) -> String {
        let allowed = Rate::per_second(self.allowed);
        self.cap.map_or_else(
            || allowed.to_string(),
            |cap| format!("{allowed} of {}", Rate::per_second(cap)),
        )
    }

    /// How long its lease lasts, and what keeps it from having one.
    pub(crate) fn told(&self) -> Option<String> {
        let problem = self.problem?;
        let lease = match self.lease_seconds {
            0.0 => format!("it may move {}", Rate::per_second(self.allowed)),
            seconds => format!("its lease lasts {seconds:.0} s more"),
        };
        Some(format!("it {problem}; {lease}"))
    }
}

/// Puts a class into the fleet that the configuration names for it, or takes it out.
pub(crate) fn follow(found: &MappedClass, config: &ConfigFiles) {
    let (class, now) = (found.class, time::now());
    let named = config.fleet(&found.name()).is_some();
    let changed = match (named, class.fleet().is_joined()) {
        (true, false) => class.join_fleet(now),
        (false, true) => class.leave_fleet(now),
        _ => false,
    };
    if changed {
        futex::wake_all(class.changes());
    }
}

/// Has the class's lease held before a command starts in it, and waits for the first answer of its server; returns what
/// is wrong, in one line.
pub(crate) fn await_lease(found: &MappedClass) -> Option<String> {
    let class = found.class;
    if !class.fleet().is_joined() {
        return None;
    }
    if let Err(error) = watching::watch(found, Confirmation::Awaited) {
        return Some(format!(
            "class {} has no lease, as policyd cannot be had: {error}",
            found.name()
        ));
    }
    let deadline = Instant::now() + FIRST;
    let is_leased = || class.fleet().lease(time::now()).is_some();
    while !is_leased() && fault::told(class.fleet().report()).is_some() && Instant::now() < deadline
    {
        let settled = class.fleet().report();
        if ![report::NOTHING, report::LEARNING].contains(&settled) {
            break;
        }
        thread::sleep(APART);
    }
    let share = Share::of(class, time::now())?;
    share
        .told()
        .map(|told| format!("class {}: {told} (`discnice fleet status` says more)", found.name()))
}
