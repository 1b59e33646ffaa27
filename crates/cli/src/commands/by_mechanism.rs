//! By which mechanism a class's bytes were accounted.

use discnice_ledger::Class;
use discnice_ledger::outside::Mechanism;
use discnice_ledger::policy::Resource;
use serde::Serialize;

/// Bytes, both ways, since the class was made, also of processes that have ended. Their sum is what the class was charged.
#[derive(Debug, Serialize)]
pub struct ByMechanism {
    /// By the library in the process, for the calls that it makes.
    preload: u64,
    /// By the answer to each call.
    seccomp: u64,
    /// From the kernel's account of a process that ptrace(2) or a frozen cgroup holds.
    freeze: u64,
    /// From the kernel's account of a process that is held by signals.
    signals: u64,
    /// From the kernel's account of a process that nothing could hold: it escaped, counted.
    unheld: u64,
}

impl ByMechanism {
    /// What is known of a class.
    pub fn of(class: &Class) -> Self {
        let of = |mechanism| class.watcher().charged(mechanism).get();
        let [seccomp, freeze, signals] =
            [Mechanism::Seccomp, Mechanism::Ptrace, Mechanism::Signals].map(Some).map(of);
        let all = class.meter(Resource::Read).total() + class.meter(Resource::Write).total();
        let unheld = class.watcher().unheld().get();
        let outside = [freeze, signals, unheld].into_iter().fold(0, u64::saturating_add);
        let others = all.saturating_sub(outside);
        // What was deleted before it was written was taken back of the whole.
        let seccomp = seccomp.min(others);
        Self { preload: others - seccomp, seccomp, freeze, signals, unheld }
    }
}
