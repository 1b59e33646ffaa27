//! What is known of a class, for people and for machines.

use std::collections::BTreeMap;
use std::thread;

use discnice_ledger::policy::{Condition, Memory, Resource};
use discnice_sys::time;
use discnice_units::{Bytes, Nanos, Rate};
use serde::Serialize;

use super::by_mechanism::ByMechanism;
use super::limits::{Cache, Shared};
use super::member_report::MemberReport;
use crate::binding::Binding;
use crate::classes::{self, MappedClass};
use crate::fleet::Share;
use crate::prediction::PredictionReport;
use crate::running::Running;
use crate::uplink::Queue;
use crate::{guest, json, own_policy};

/// So many classes are worth a thread.
const MANY: usize = 50;

/// One class, as `--json` prints it. Rates are bytes (or operations) per second, `null` without
/// a limit; amounts are bytes since the class was made; times are seconds.
#[derive(Debug, Serialize)]
pub struct ClassReport {
    pub name: String,
    pub automatic: bool,
    /// Whether its shared memory was removed (ipcrm(1), `class rm --force`): its members are held, and nothing new
    /// joins it.
    pub removed: bool,
    /// `limit_R` for each resource R.
    #[serde(flatten)]
    pub limits: BTreeMap<String, Option<u64>>,
    pub net_loopback: bool,
    /// `always` or `busy`: when the limits hold.
    pub when: &'static str,
    /// Whether the limits hold now, because others are busy; always true for `always`.
    pub throttled: bool,
    /// Bytes a second that it may have while it gives way; `null` without such a rate.
    pub at_least: Option<u64>,
    pub weight: u32,
    /// Whether each child of a member has the limits for itself, in a class of its own.
    pub per_child: bool,
    /// The class that it has its limits from, as its first member is a child of a member of that; `null` for any other.
    pub child_of: Option<String>,
    /// `window`, `sleep` or `program`.
    pub policy: &'static str,
    /// How the program is that is the policy: `unasked`, `answers`, `ended`, `silent` or `wrong`; `null` without one.
    pub policy_program: Option<&'static str>,
    /// Time over which the limits hold.
    pub window_seconds: f64,
    /// What was given as the shortest and the longest wait; `null` for the usual one.
    pub shortest_sleep_seconds: Option<f64>,
    pub longest_sleep_seconds: Option<f64>,
    pub guest: bool,
    pub cache: Cache,
    pub uplink: Shared,
    /// The queue on the network that it gives way to.
    pub uplink_queue: Option<Queue>,
    /// Bytes of resident memory down to which pages are taken while others wait for memory; `null` without
    /// such a bound.
    pub memory_low: Option<u64>,
    /// Bytes of resident memory above which they are.
    pub memory_high: Option<u64>,
    /// Whether either was given, not only found by default.
    #[serde(skip)]
    pub memory_given: bool,
    /// Whether it stands still for that now.
    pub memory_held: bool,
    /// Bytes that it may move in all; `null` without such a bound.
    pub disk_total: Option<u64>,
    /// How many of them it has moved; `null` without a bound.
    pub disk_total_used: Option<u64>,
    /// Conditions that a job of it waits for: `ac`, `unmetered`, `idle`, `hours`, `load`, `cmd`.
    pub unmet: Vec<&'static str>,
    /// What the next call waits for: `paused`, `condition`, `disk_total`, `memory`, `at_least`,
    /// `others`, or the resource of an overdrawn limit; `null` for
    /// nothing.
    pub waits_for: Option<Binding>,
    /// Whether the user has paused it; of a member see there.
    pub paused: bool,
    /// Whether `discnice trace` shows its calls.
    pub traced: bool,
    /// `rate_R` for each resource R: over the last second.
    #[serde(flatten)]
    pub rates: BTreeMap<String, u64>,
    pub read: u64,
    pub written: u64,
    pub by_mechanism: ByMechanism,
    pub operations: u64,
    pub metadata: u64,
    pub sent: u64,
    pub received: u64,
    pub waits: u64,
    pub waited_seconds: f64,
    /// What it has of a budget that it shares with other machines; `null` without one.
    pub fleet: Option<Share>,
    /// Members beyond those that can be listed.
    pub unlisted: u32,
    /// Prediction against account, if asked for.
    pub prediction: Option<PredictionReport>,
    pub members: Vec<MemberReport>,
}

impl ClassReport {
    /// What is known of a class; `seen`: with what was predicted and what the kernel says of each of its processes.
    pub fn of(found: &MappedClass, seen: bool) -> Self {
        let class = found.class;
        let (limits, now) = (class.limits(), time::now());
        let (waits, waited) = class.waits();
        let total = |resource| class.meter(resource).total();
        let limit = |one| Some(limits.rate(one)).filter(|rate| !rate.is_unlimited());
        let rate = |one| class.meter(one).recent().rate(now);
        let named = |prefix, one: Resource| format!("{prefix}_{}", one.name());
        let every = Resource::ALL.into_iter();
        let memory = guest::memory(class);
        let running: Vec<Running<'_>> = Running::all(found).collect();
        Self {
            name: found.name(),
            automatic: found.is_automatic(),
            removed: found.removed,
            limits: every
                .clone()
                .map(|one| (named("limit", one), limit(one).map(Rate::get)))
                .collect(),
            net_loopback: limits.loopback(),
            when: limits.when().name(),
            throttled: !class.yields() || !class.limited().is_empty(),
            at_least: limits.at_least().map(Rate::get),
            weight: limits.weight(),
            per_child: limits.per_child(),
            child_of: class.parent().and_then(classes::name_of),
            policy: limits.pace().policy.name(),
            policy_program: own_policy::health(class),
            window_seconds: limits.pace().window().as_secs_f64(),
            shortest_sleep_seconds: limits.pace().given_shortest_sleep().map(Nanos::as_secs_f64),
            longest_sleep_seconds: limits.pace().given_longest_sleep().map(Nanos::as_secs_f64),
            guest: limits.guest(),
            cache: Cache::of(limits.protects_cache()),
            uplink: Shared::of(limits.yields_uplink()),
            uplink_queue: Queue::of(class),
            memory_low: memory.map(|bounds| bounds.low),
            memory_high: memory.map(|bounds| bounds.high),
            memory_given: class.memory() != Memory::DEFAULT,
            memory_held: running.iter().any(Running::rests),
            disk_total: limits.disk_total().map(Bytes::get),
            disk_total_used: limits.disk_total().map(|_| class.disk_total_used().get()),
            unmet: class.unmet().iter().map(Condition::name).collect(),
            waits_for: Binding::of(found, running.iter().any(Running::rests)),
            paused: class.is_paused(),
            traced: class.is_traced(),
            rates: every.map(|one| (named("rate", one), rate(one))).collect(),
            read: total(Resource::Read),
            written: total(Resource::Write),
            by_mechanism: ByMechanism::of(class),
            operations: total(Resource::Operations),
            metadata: total(Resource::Metadata),
            sent: total(Resource::NetUp),
            received: total(Resource::NetDown),
            waits,
            waited_seconds: waited.as_secs_f64(),
            fleet: Share::of(class, now),
            unlisted: class.unlisted(),
            prediction: seen.then(|| PredictionReport::of(class)),
            members: running.iter().map(|one| MemberReport::of(one, &limits, seen)).collect(),
        }
    }

    /// Its name, and what has become of it.
    pub fn title(&self) -> String {
        if self.removed { format!("{} (removed)", self.name) } else { self.name.clone() }
    }

    /// What it waits for, in words.
    pub fn now(&self) -> String {
        match self.waits_for {
            _ if self.members.is_empty() => String::new(),
            Some(reason) => reason.state(),
            None => String::new(),
        }
    }

    pub fn rate(&self, resource: Resource) -> u64 {
        self.rates.get(&format!("rate_{}", resource.name())).copied().unwrap_or(0)
    }

    pub fn limit(&self, resource: Resource) -> Option<u64> {
        self.limits.get(&format!("limit_{}", resource.name())).copied().flatten()
    }
}

/// Reports of all classes, for people.
pub fn all(classes: &[MappedClass]) -> Vec<ClassReport> {
    let every = |part: &[MappedClass]| {
        part.iter().map(|found| ClassReport::of(found, false)).collect::<Vec<_>>()
    };
    by_all(classes, every).into_iter().flatten().collect()
}

/// Reports of all classes, for machines: an array that stands `depth` deep in what is printed.
pub fn to_json(classes: &[MappedClass], depth: usize) -> serde_json::Result<String> {
    let every = |part: &[MappedClass]| {
        json::array(part.iter().map(|found| ClassReport::of(found, true)), depth)
    };
    let parts: serde_json::Result<Vec<String>> = by_all(classes, every).into_iter().collect();
    Ok(json::join(parts?, depth))
}

/// What `every` makes of all classes; of many, by all processors, in parts: the kernel takes some microseconds
/// for each member's life and account.
fn by_all<T: Send>(classes: &[MappedClass], every: impl Fn(&[MappedClass]) -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    if classes.len() < MANY || workers == 1 {
        return vec![every(classes)];
    }
    let every = &every;
    let parts = classes.chunks(classes.len().div_ceil(workers));
    thread::scope(|scope| {
        let each: Vec<_> = parts
            .map(|part| (part, thread::Builder::new().spawn_scoped(scope, move || every(part))))
            .collect();
        // A part that no thread can be had for, or that a thread died at, is done here.
        each.into_iter()
            .map(|(part, thread)| {
                let done = thread.ok().and_then(|thread| thread.join().ok());
                done.unwrap_or_else(|| every(part))
            })
            .collect()
    })
}
