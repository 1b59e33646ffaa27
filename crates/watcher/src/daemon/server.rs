//! policyd's loop.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use discnice_processes::fork;
use discnice_sys::block::BlockId;
use discnice_sys::{deadline, time};
use discnice_units::Nanos;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::daemon::client::{self, RULES};
use crate::daemon::connections::Connections;
use crate::daemon::rules::patrol::Patrol;
use crate::daemon::settings::DaemonSettings;
use crate::daemon::singleton::{DaemonFiles, Only};
use crate::daemon::socket_activation;
use crate::daemon::tuning;
use crate::daemon::watched_classes::WatchedClasses;
use crate::holding;
use crate::schedule::reactor::Reactor;

/// How the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Another one is there already.
    NotNeeded,
    /// It had nothing to do, or was asked to end.
    Done,
}

/// The right to be the only one; one that was just killed may keep it for a moment, until its worker has ended, too. Without
/// it, `first` is watched by the one that has it: what started this daemon may not have waited for an answer.
fn claim_or_hand_over(place: &DaemonFiles, first: Option<BlockId>) -> io::Result<Option<Only>> {
    let until = time::now().plus(tuning::daemon::DYING);
    while time::now() < until {
        if let Some(only) = place.claim()? {
            return Ok(Some(only));
        }
        if first.is_some_and(|block| client::hand_over(place, block).is_ok()) {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    place.claim()
}

/// Watches classes until there has been nothing to watch, and no rule, for `idle`. `first` is a class to begin with.
///
/// # Errors
/// There is no private runtime directory, or descriptors are short.
pub fn serve(first: Option<BlockId>, idle: Nanos, settings: DaemonSettings) -> io::Result<End> {
    let passed = socket_activation::passed();
    let place = DaemonFiles::find()?;
    let Some(only) = claim_or_hand_over(&place, first)? else { return Ok(End::NotNeeded) };
    let listener = passed.map_or_else(|| place.listen(&only), Ok)?;
    raise_descriptors();
    holding::step_out();
    // The keeper holds the lock and the socket, so that clients wait for the next watcher.
    fork::kept(
        tuning::daemon::GUARDIAN_LOOK,
        || ControlFlow::Continue(()),
        || {
            // Where descriptors are short the next one may have more luck, or a command's request for another daemon.
            let _ =
                listener.try_clone().and_then(|listener| watch(first, (idle, settings), listener));
        },
    )?;
    drop(only);
    Ok(End::Done)
}

/// Watches, in a process that has a keeper.
fn watch(
    first: Option<BlockId>,
    (idle, settings): (Nanos, DaemonSettings),
    listener: UnixListener,
) -> io::Result<()> {
    // Of a daemon that was killed before, together with its helpers.
    holding::let_go_of_abandoned();
    let mut connections = Connections::new(listener)?;
    let mut reactor = Reactor::new()?;
    let mut keeper = WatchedClasses::new(settings);
    let mut patrol = Patrol::new(settings.rules);
    if let Some(block) = first {
        keeper.watch(block);
    }
    let mut busy_at = time::now();
    while !reactor.is_ended() {
        for block in patrol.step(time::now()) {
            keeper.watch(block);
        }
        let next = keeper.step().min(patrol.next());
        let now = time::now();
        if !keeper.is_empty() || patrol.len() > 0 {
            busy_at = now;
        } else if now >= busy_at.plus(idle) {
            break;
        }
        let next = next.min(busy_at.plus(idle)).min(connections.next(now));
        let clients = connections.descriptors(now);
        let others: Vec<_> = clients.iter().copied().chain(keeper.descriptors(now)).collect();
        let ready = reactor.wait(next, &others);
        let (waited, announced) = ready.split_at(clients.len().min(ready.len()));
        let (waited, announced) = (waited.contains(&true), announced.contains(&true));
        if announced {
            keeper.hurry();
        }
        let now = time::now();
        if (waited || now >= connections.next(now))
            && connections.serve(now, |line| answer(line, &mut keeper, patrol.len()))
        {
            busy_at = time::now();
        }
        keeper.tend();
        if !keeper.holds() {
            deadline::disarm();
        }
    }
    Ok(())
}

/// A descriptor or two for each process that is watched.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Refused: then accounts are opened for each look.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Does what a line asks for; returns the reply.
fn answer(line: &[u8], keeper: &mut WatchedClasses, rules: usize) -> String {
    if line.trim_ascii_end() == RULES {
        return format!("rules {rules}\n");
    }
    match parse(line) {
        Some(block) if keeper.watch(block) => {
            keeper.step();
            "watching\n".into()
        }
        Some(block) => format!("no class in block {block:x}\n"),
        None => "say: watch BLOCK\n".into(),
    }
}

/// The block that a client's line asks to be watched: `watch BLOCK`, in hexadecimal.
#[must_use]
pub fn parse(line: &[u8]) -> Option<BlockId> {
    let digits = std::str::from_utf8(line).ok()?.trim_end().strip_prefix("watch ")?;
    u64::from_str_radix(digits, 16).ok().map(BlockId::from_claim)
}
