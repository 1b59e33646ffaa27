//! What a class, or a process, waits for at this moment.

use discnice_ledger::outside::Reason;
use discnice_ledger::policy::{Resource, Resources};
use discnice_registry::MappedBoard;
use discnice_sys::{procfs, time};
use discnice_units::Nanos;
use discnice_watcher::process::{call, maps, threads};

use super::others;
use crate::binding::conditions;
use crate::classes::MappedClass;
use crate::running::Running;
use crate::uplink::Queue;
use crate::used_up;

/// Everything that holds members of a class now.
pub fn of_class(found: &MappedClass) -> Vec<String> {
    let name = found.name();
    let mut said = Vec::new();
    let unmet = found.class.unmet();
    if !unmet.is_empty() {
        said.push(format!("{}: a job of it is paused until then (--only-when)", conditions(unmet)));
    } else if found.class.is_paused() {
        said.push(format!("`discnice resume {name}`: it is paused"));
    }
    said.extend(used_up(found));
    if Running::all(found).any(|running| running.rests()) {
        said.push("memory: others wait for it".into());
    }
    said.extend(debts(found));
    let queue = Queue::of(found.class).map(|queue| queue.words());
    if queue.is_none() || !found.class.limited().is_empty() {
        said.extend(busy(found));
    }
    said.extend(queue);
    if said.is_empty() {
        said.push("nothing".into());
    }
    said
}

/// Says that the class has used up its disk total.
fn used_up(found: &MappedClass) -> Option<String> {
    found.class.is_used_up().then(|| used_up::told(found))
}

/// Thresholds that the class is ahead of.
fn debts(found: &MappedClass) -> impl Iterator<Item = String> {
    let (class, now) = (found.class, time::now());
    let limited = class.limited();
    Resource::ALL.into_iter().filter(move |one| limited.contains(*one)).filter_map(move |one| {
        let meter = class.meter(one);
        let left = meter.frontier().since(now);
        let told = super::rate(one, meter.rate());
        (left > Nanos(0)).then(|| format!("{told}; what was moved is paid for in {left}"))
    })
}

/// The others that are given way to, or that there are none.
fn busy(found: &MappedClass) -> Vec<String> {
    let class = found.class;
    if !class.yields() {
        return Vec::new();
    }
    if class.limited().is_empty() {
        return vec!["nothing: others are not busy, so its limits are not in force".into()];
    }
    let Ok(board) = MappedBoard::find_or_create() else {
        return vec!["it is always held: whether others are busy is not known".into()];
    };
    let mut said = Vec::new();
    let disks: Vec<_> = class.throttled(board.board).collect();
    if !disks.is_empty() {
        let seen = others::look();
        said.extend(disks.into_iter().map(|disk| others::on(disk, &seen)));
        let least = class.at_least().filter(|_| class.keeps_least(time::now()));
        said.extend(least.map(|least| format!("its least rate lets it go on: {least}")));
    }
    if !class.limited().within(Resources::NETWORK).is_empty() {
        said.push("others that use the network: it gives way to them".into());
    }
    said
}

/// What holds one process now.
pub fn of_process(found: &MappedClass, running: &Running<'_>) -> Vec<String> {
    let id = running.member.process();
    if let Some(account) = running.held {
        match account.reason {
            Reason::Paused if !found.class.unmet().is_empty() => {
                let unmet = conditions(found.class.unmet());
                return vec![format!("{unmet}: it is paused until then (--only-when)")];
            }
            Reason::Paused => {
                return vec![format!("`discnice resume {id}`, or of its class: it is paused")];
            }
            Reason::Memory => return vec!["memory: others wait for it".into()],
            _ => {}
        }
    }
    let waiting = waiting_threads(id);
    if waiting == Some((0, 0)) {
        return vec!["nothing: it has ended".into()];
    }
    let mut said = match waiting {
        Some((0, _)) => vec!["nothing of its class at this moment".into()],
        Some((waiting, all)) => vec![format!("its class: {waiting} of its {all} threads")],
        None => Vec::new(),
    };
    if waiting.is_none_or(|(waiting, _)| waiting > 0) {
        said.extend(used_up(found));
        said.extend(debts(found));
        said.extend(busy(found));
    }
    said
}

/// Whether a thread of the process waits in our library, or for its supervisor.
pub fn any_thread_waits(id: u32) -> bool {
    if procfs::is_executing(id) {
        return false;
    }
    let is_supervised = |thread: &u32| {
        let place = std::fs::read_to_string(format!("/proc/{id}/task/{thread}/wchan"));
        place.is_ok_and(|place| place.contains("seccomp"))
    };
    waiting_threads(id).is_some_and(|(waiting, _)| waiting > 0)
        || threads(id).any(|thread| is_supervised(&thread))
}

/// Threads that wait in our library, and all; `None` where the kernel does not show it.
fn waiting_threads(id: u32) -> Option<(usize, usize)> {
    let maps = maps(id)?;
    let blocks: Vec<(u64, u64)> = maps.lines().filter_map(block).collect();
    let is_ours =
        |address: u64| blocks.iter().any(|(start, end)| (*start..*end).contains(&address));
    let all: Vec<u32> = threads(id).collect();
    let waiting = all.iter().filter(|thread| {
        let call = call(id, **thread);
        call.is_some_and(|call| call.number == libc::SYS_futex && is_ours(call.arguments[0]))
    });
    Some((waiting.count(), all.len()))
}

/// The bounds of a line of /proc/PID/maps that is a block of shared memory of ours.
fn block(line: &str) -> Option<(u64, u64)> {
    let is_block = line.contains(" /SYSV") || line.contains("/discnice");
    let (start, rest) = line.split_once('-').filter(|_| is_block)?;
    let (end, _) = rest.split_once(' ')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}
