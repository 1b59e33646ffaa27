//! The lease of one class, held by a thread of its own: a server that hangs holds up nothing else.

#![allow(unsafe_code, reason = "the class is unmapped in the end")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use discnice_fleet::demand::{self, Done};
use discnice_fleet::fault::report;
use discnice_fleet::script::{Granted, Reply};
use discnice_fleet::{Address, Fault, Link, Node, settings};
use discnice_processes::fork;
use discnice_registry::{MappedClass, class};
use discnice_sys::block::BlockId;
use discnice_sys::{futex, process, time};
use discnice_units::{Bytes, Moment, Nanos};
use rustix::time::{ClockId, clock_gettime};

use crate::daemon::tuning;
use crate::process::is_colleague;

/// Where the budgets of classes are, by name; `None` for one that the configuration gives none.
pub type Addresses = fn(&str) -> Result<Option<String>, String>;

/// The stack of the thread: it decrypts, and reads the configuration.
const STACK: usize = 1 << 20;

/// A thread that holds the lease of a class as long as that has members.
#[derive(Debug)]
pub(crate) struct LeaseHolder {
    pub(crate) block: BlockId,
    stage: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

/// Stages of a thread.
mod stage {
    /// It holds the lease.
    pub(super) const HOLDS: u32 = 0;
    /// It holds the lease, and is to look for new members.
    pub(super) const HURRIES: u32 = 1;
    /// It gives the lease back, or has done so.
    pub(super) const ENDS: u32 = 2;
}

impl LeaseHolder {
    /// Begins to hold the lease of the class in this block; `None` where no thread is to be had. Its members then have
    /// their floor.
    pub(crate) fn start(block: BlockId, addresses: Addresses) -> Option<Self> {
        let mapped = class::attach(block)?;
        // What another process reported is over.
        mapped.class.fleet().note_report(report::NOTHING);
        let stage = Arc::new(AtomicU32::new(stage::HURRIES));
        let told = Arc::clone(&stage);
        let work = move || {
            Holder::new(mapped, addresses).hold(&told);
            // SAFETY: the holder is gone, and nothing else refers to this mapping.
            unsafe { mapped.unmap() };
        };
        let thread = fork::thread("lease", STACK, work).ok()?;
        Some(Self { block, stage, thread })
    }

    /// Notes that members are on the way; false if it gives the lease back already.
    pub(crate) fn expect_members(&self) -> bool {
        let (won, lost) = (Ordering::AcqRel, Ordering::Acquire);
        let hurried = self.stage.compare_exchange(stage::HOLDS, stage::HURRIES, won, lost);
        let expects = matches!(hurried, Ok(_) | Err(stage::HURRIES));
        self.thread.thread().unpark();
        expects
    }

    /// Returns true if it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// What the thread knows.
struct Holder {
    mapped: MappedClass,
    addresses: Addresses,
    name: String,
    node: Node,
    link: Option<(Address, Link)>,
    /// At the last call.
    before: Done,
    /// What it asked for then; `None` before.
    wanted: Option<u64>,
    /// Time since the machine was started in which it was suspended.
    suspended: Nanos,
    /// Until when the lease is left to others.
    waived_until: Moment,
}

impl Holder {
    fn new(mapped: MappedClass, addresses: Addresses) -> Self {
        let (class, now) = (mapped.class, time::now());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // The class's number tells classes of one name on machines of one name apart, and a class from a later one.
        let name = format!("{host}/{}/{:08x}", mapped.name(), class.nonce() as u32);
        // One that held it before was killed; its lease is in force.
        let node = Node::new(class.weight(), class.fleet().lease(now).unwrap_or_default());
        let (before, suspended) = (done(&mapped), suspended());
        let (link, wanted, waived_until) = (None, None, Moment::FIRST);
        Self { mapped, addresses, name, node, link, before, wanted, suspended, waived_until }
    }

    fn hold(&mut self, stage: &AtomicU32) {
        let fleet = self.mapped.class.fleet();
        let mut peopled = time::now();
        loop {
            let now = time::now();
            let order = (Ordering::AcqRel, Ordering::Acquire);
            let hurried =
                stage.compare_exchange(stage::HURRIES, stage::HOLDS, order.0, order.1).is_ok();
            if hurried || self.mapped.class.living(process::exists).next().is_some() {
                peopled = now;
            }
            let is_over = now > peopled.plus(tuning::leases::EMPTY) || !fleet.is_joined();
            if is_over
                && stage.compare_exchange(stage::HOLDS, stage::ENDS, order.0, order.1).is_ok()
            {
                break;
            }
            if self.claims(now) {
                self.step();
            }
            thread::park_timeout(tuning::leases::LOOK);
        }
        if fleet.claim(process::id(), is_colleague) {
            self.leave();
            fleet.release(process::id());
        }
    }

    /// Takes the lease, or has it already. Another policyd of this user, in another session, may hold it, or may be the only
    /// one that is told of a server by its configuration.
    fn claims(&self, now: Moment) -> bool {
        now >= self.waived_until && self.mapped.class.fleet().claim(process::id(), is_colleague)
    }

    fn step(&mut self) {
        let now = time::now();
        let suspended = suspended();
        if suspended.minus(std::mem::replace(&mut self.suspended, suspended))
            > tuning::leases::SUSPENDED
        {
            // The lease ran on for the server.
            self.node = Node::new(self.mapped.class.weight(), (0, Moment::FIRST));
            let changed = self.mapped.class.end_lease(now);
            self.wake(changed);
        }
        let done = done(&self.mapped);
        if demand::was_held(&self.before, &done)
            && self.wanted.is_some_and(|wanted| wanted < self.most())
        {
            self.node.hurry(self.before.at.plus(Nanos(Nanos::SECOND.0)));
        }
        if now >= self.node.due() {
            self.call(now, done);
        }
    }

    /// Calls the server, and puts what it grants into the class's memory.
    fn call(&mut self, now: Moment, done: Done) {
        let class = self.mapped.class;
        let floor = class.fleet().floor().get();
        // A job starts: it is not known yet what it can use.
        let usual = || demand::wants(&self.before, &done, self.most());
        let wants = self.wanted.map_or_else(|| self.most(), |_| usual());
        self.wanted = Some(wants);
        self.before = done;
        self.node.set_weight(class.weight());
        let ask = self.node.ask(now, wants.saturating_sub(floor));
        let name = self.name.clone();
        // Connecting takes its time, which is the lease's.
        let reply = self.link().and_then(|link| link.ask(&name, &ask));
        match reply {
            Ok(Reply::Granted(granted)) => {
                let chance = discnice_sys::time::now().0 ^ class.nonce();
                if self.node.take(&ask, now, &granted, chance) {
                    self.write(&granted);
                }
            }
            Ok(Reply::Stale | Reply::Left) => {}
            Err(fault) => self.fail(&fault),
        }
    }

    /// Most that the class could use.
    fn most(&self) -> u64 {
        let class = self.mapped.class;
        let cap = class.fleet().cap().map_or(tuning::leases::FIRST_WISH, |cap| cap.get());
        class.total().threshold().get().min(cap)
    }

    /// A connection to the class's server.
    fn link(&mut self) -> Result<&mut Link, Fault> {
        let text = (self.addresses)(&self.mapped.name()).map_err(Fault::Address)?;
        // Commands take a class out of its fleet: here the file may be missing for a moment, or another environment's.
        let none = || Fault::Address("config.toml names none for the class".to_owned());
        let text = text.ok_or_else(none)?;
        let address = Address::parse(&text)?;
        let kept = self.link.take().filter(|(one, _)| *one == address);
        let link = match kept {
            Some((_, link)) => link,
            None => Link::open(&address)?,
        };
        Ok(&mut self.link.insert((address, link)).1)
    }

    fn write(&self, granted: &Granted) {
        let class = self.mapped.class;
        class.fleet().note_cap(granted.cap);
        let lease = (granted.grant, granted.floor);
        let changed = class.write_lease(time::now(), lease, self.node.until());
        self.wake(changed);
        let learning = granted.learning > 0;
        class.fleet().note_report(if learning { report::LEARNING } else { report::LEASED });
    }

    /// Goes on with the lease until it ends; a node that is refused has no place among the floors either.
    fn fail(&mut self, fault: &Fault) {
        let class = self.mapped.class;
        // A reply that comes later is the wrong one for the next call.
        self.link = None;
        class.fleet().note_report(fault.number());
        if matches!(fault, Fault::Full(_)) {
            let changed = class.write_lease(time::now(), (0, settings::LEAST.get()), Moment(1));
            self.wake(changed);
        }
        if !matches!(fault, Fault::Unreachable(_)) {
            self.node.put_off(time::now().plus(tuning::leases::RETRY));
        }
        if matches!(fault, Fault::Address(_)) {
            // The configuration of another session may name a server.
            self.waived_until = time::now().plus(tuning::leases::RETRY);
            class.fleet().release(process::id());
        }
    }

    /// Falls to the floor, then says so: what is told to be free must not be in use.
    fn leave(&mut self) {
        let changed = self.mapped.class.end_lease(time::now());
        self.wake(changed);
        self.mapped.class.fleet().note_report(report::IDLE);
        let ask = self.node.leave(time::now());
        if let Some((_, link)) = &mut self.link {
            // Not heard: it is forgotten with its lease.
            let _ = link.ask(&self.name, &ask);
        }
    }

    fn wake(&self, changed: bool) {
        if changed {
            futex::wake_all(self.mapped.class.changes());
        }
    }
}

fn done(mapped: &MappedClass) -> Done {
    let class = mapped.class;
    let at = time::now();
    let owed = class.total().paid_at(at, 0).since(at);
    Done { at, moved: Bytes::new(class.total().total()), waited: class.waits().1, owed }
}

/// How long the machine has been suspended since it was started.
fn suspended() -> Nanos {
    let nanos = |clock| {
        let time = clock_gettime(clock);
        Nanos(time.tv_sec.unsigned_abs() * Nanos::SECOND.0 + time.tv_nsec.unsigned_abs())
    };
    let monotonic = nanos(ClockId::Monotonic);
    nanos(ClockId::Boottime).minus(monotonic)
}
