//! One process of a class, as `status` shows it.

use std::borrow::Cow;
use std::path::PathBuf;

use discnice_escape::Foreign;
use discnice_ledger::State;
use discnice_ledger::outside::{Account, Mechanism, Reason};
use discnice_ledger::policy::{Limits, Resource, Resources};
use discnice_sys::procfs;
use discnice_units::Nanos;
use discnice_watcher::network;
use serde::Serialize;

use crate::program;
use crate::running::Running;

/// One process, as `--json` prints it. Amounts are bytes, times are seconds.
#[derive(Debug, Serialize)]
pub struct MemberReport {
    /// Its id.
    pub process: u32,
    /// Its program's name.
    pub name: String,
    /// How it is held: `preload`, `seccomp`, `freeze`, `signals`, or `none`.
    pub mechanism: &'static str,
    /// Why it is not held, if it is not.
    pub escape: Option<String>,
    /// Why it is held from outside, if it is.
    pub why: Option<&'static str>,
    /// The limit of its class that does not hold for it, if there is one.
    pub misses: Option<&'static str>,
    /// Whether it stands because the user wants it to.
    pub paused: bool,
    /// What was charged for it since it joined the class.
    pub read: u64,
    /// What was charged for it since then.
    pub written: u64,
    /// What the kernel says that it moved since then, both ways; `null` where that is hidden, or was not asked for.
    pub seen: Option<u64>,
    /// Of what was charged: what it had not charged itself.
    pub escaped: u64,
    /// How long it was held, by itself.
    pub waited_seconds: f64,
    /// How long it was held from outside.
    pub frozen_seconds: f64,
}

impl MemberReport {
    /// What is known of a process; the kernel is asked only if `seen`, which takes longer than all the rest, or if
    /// it is not held.
    pub fn of(running: &Running<'_>, limits: &Limits, seen: bool) -> Self {
        let Running { member, outside, held, .. } = *running;
        let escape = escape(running);
        let escapes = escape.is_some();
        let charged = running.charged();
        // A watcher has an account of what a filter holds, too.
        let account = if member.state() == State::Notified { outside } else { held };
        let misses = limits.beyond(seen_of(member.state(), account)).filter(|_| !escapes);
        Self {
            process: member.process(),
            name: running.name(),
            mechanism: mechanism(member.state(), escapes, held),
            escape,
            misses: misses.map(Resource::option),
            why: held.and_then(|account| explain(account.reason)),
            paused: running.is_paused(),
            read: charged.read,
            written: charged.written,
            seen: if seen || escapes { running.seen() } else { None },
            escaped: outside.map_or(0, |account| account.escaped),
            waited_seconds: Nanos(member.books().waited()).as_secs_f64(),
            frozen_seconds: Nanos(outside.map_or(0, |account| account.frozen)).as_secs_f64(),
        }
    }
}

impl MemberReport {
    /// Why it is not held to all limits of its class, if it is not.
    pub fn not_held(&self) -> Option<Cow<'_, str>> {
        let misses =
            |limit| Cow::from(format!("{limit} needs the library in it; other limits hold"));
        self.escape.as_deref().map(Cow::from).or_else(|| self.misses.map(misses))
    }
}

fn mechanism(state: State, escapes: bool, held: Option<Account>) -> &'static str {
    if escapes {
        return "none";
    }
    let mechanism = match (state, held.and_then(|account| account.mechanism)) {
        (_, Some(Mechanism::Signals)) => Mechanism::Signals,
        (State::Outside | State::Executing | State::Confined, known) => {
            known.unwrap_or(Mechanism::Ptrace)
        }
        (State::Notified, _) => Mechanism::Seccomp,
        _ => Mechanism::Preload,
    };
    mechanism.name()
}

/// What of a process is seen by what holds it, and by the watcher of its class, if that has an account of it.
fn seen_of(state: State, account: Option<Account>) -> Resources {
    match (state, account) {
        (State::Notified, None) => Resources::DISK,
        (State::Notified, Some(_)) => Resources::DISK.and(network::seen()),
        (_, Some(account)) if account.reason.is_without_library() => {
            Resources::FROM_OUTSIDE.and(network::seen())
        }
        _ => Resources::ALL,
    }
}

/// Why a process is held from outside, or cannot be.
pub fn explain(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::None => return None,
        Reason::Attached => "was attached while it ran",
        Reason::Descendant => "descends from a process that is held from outside",
        Reason::NoLibrary => "runs a program that the library cannot enter",
        Reason::Confined => "forbids itself system calls that limiting needs (seccomp)",
        Reason::RanAhead => "does I/O that no call shows (page faults, io_uring)",
        Reason::Traced => "is being traced by a debugger",
        Reason::Forbidden => "may be neither traced nor stopped",
        Reason::Foreground => "could only be stopped by a signal, which its terminal would show",
        Reason::Hidden => {
            "hides its I/O from the watcher of its class (it is not dumpable, or of another group)"
        }
        Reason::Memory => "is paused, as others wait for memory",
        Reason::PerChild => "has children that have classes of their own",
        Reason::Paused => "is paused until `discnice resume`",
    })
}

/// Of a process about which the kernel tells its own user nothing.
const HIDDEN: &str = "its program has other rights than yours (setuid, setgid or capabilities), or hides what it does";

/// Of a process of which nothing can be told yet.
const EXECUTING: &str =
    "is executing a program and has not started it yet; it is examined once it has";

/// Of a process that policyd would hold.
const UNWATCHED: &str =
    "policyd, which would hold it, has ended; the next command that limits something starts it";

/// Tells why a process is not held: it cannot or must not be held, it executed a program in which
/// our library never reported, or it filters its own system calls.
pub fn escape(running: &Running<'_>) -> Option<String> {
    let Running { member, outside, held, .. } = *running;
    if held.is_some() {
        return None;
    }
    if let Some(holder) = running.stopped_holder {
        return Some(format!(
            "process {holder}, which would hold it, is stopped (kill -CONT {holder})"
        ));
    }
    let reason = outside.map_or(Reason::None, |account| account.reason);
    let could_be = outside.is_some_and(|account| account.mechanism.is_some());
    let why = match member.state() {
        State::Executing if reason == Reason::Hidden => explain(reason),
        State::Outside => {
            return Some(explain(reason).filter(|_| !could_be).unwrap_or(UNWATCHED).to_owned());
        }
        State::Executing => None,
        State::Confined => explain(Reason::Confined),
        State::Free | State::Claimed | State::Active | State::Notified => return None,
    };
    if procfs::is_executing(member.process()) {
        return Some(EXECUTING.into());
    }
    // Its path may lead elsewhere from here: it may have another root directory.
    let link = PathBuf::from(format!("/proc/{}/exe", member.process()));
    let path = match std::fs::read_link(&link) {
        Ok(path) => path,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Some(HIDDEN.into());
        }
        Err(_) => PathBuf::from("its program"),
    };
    let obstacle = || program::obstacle(program::kind(&link));
    let why = why.or_else(obstacle).unwrap_or("has not loaded the library");
    Some(format!("{} {why}", Foreign::path(&path)))
}
