//! One process of a class, as `status` shows it.

use std::path::PathBuf;

use discnice_budget::outside::{Account, Mechanism, Reason};
use discnice_budget::{Class, Member, MemberId, State};
use discnice_external::account::{OwnAccount, Rest};
use discnice_external::process::lives;
use discnice_sys::time;
use discnice_units::Nanos;
use serde::Serialize;

use crate::program;

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
    /// What was charged for it.
    pub read: u64,
    /// What was charged for it.
    pub written: u64,
    /// What the kernel says that it moved, both ways; `null` where that is hidden, or was not asked for.
    pub seen: Option<u64>,
    /// Of what was charged: what it had not charged itself.
    pub escaped: u64,
    /// How long it was held, by itself.
    pub waited_seconds: f64,
    /// How long it was held from outside.
    pub frozen_seconds: f64,
}

impl MemberReport {
    /// Whether it stands still for the memory that it has.
    pub fn rests(&self) -> bool {
        self.why == explain(Reason::Memory)
    }

    /// What is known of the member in this slot; the kernel is asked only if `seen`, which takes longer
    /// than all the rest.
    pub fn of(class: &Class, slot: MemberId, member: &Member, seen: bool) -> Self {
        let outside = outside(class, slot, member);
        let held = held(class, outside);
        let escape = escape(member, outside, held);
        let charged = member.books().charged();
        let rest = if member.state() == State::Outside { Rest::Known } else { Rest::Children };
        let look = || OwnAccount::once(member.process(), charged, rest).ok();
        let seen = seen.then(look).flatten();
        Self {
            process: member.process(),
            name: name(member),
            mechanism: mechanism(member.state(), escape.is_some(), held),
            escape,
            why: held.and_then(|account| explain(account.reason)),
            read: charged.read,
            written: charged.written,
            seen: seen.map(|io| io.read + io.written),
            escaped: outside.map_or(0, |account| account.escaped),
            waited_seconds: Nanos(member.books().waited()).as_secs_f64(),
            frozen_seconds: Nanos(outside.map_or(0, |account| account.frozen)).as_secs_f64(),
        }
    }
}

/// The name of a member's program.
pub fn name(member: &Member) -> String {
    let name = member.name();
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Why the member in this slot is not held, if it is not.
pub fn escape_of(class: &Class, slot: MemberId, member: &Member) -> Option<String> {
    let outside = outside(class, slot, member);
    escape(member, outside, held(class, outside))
}

/// Whether the member in this slot stands still for the memory that it has.
pub fn rests(class: &Class, slot: MemberId, member: &Member) -> bool {
    held(class, outside(class, slot, member))
        .is_some_and(|account| account.reason == Reason::Memory)
}

/// What holding the member from outside has come to.
fn outside(class: &Class, slot: MemberId, member: &Member) -> Option<Account> {
    class.held(slot).and_then(|held| held.of(member))
}

/// The same, if somebody holds it now.
fn held(class: &Class, outside: Option<Account>) -> Option<Account> {
    let held = outside.filter(|account| account.mechanism != Mechanism::None)?;
    class.watcher().process(time::now().0, lives).map(|_| held)
}

fn mechanism(state: State, escapes: bool, held: Option<Account>) -> &'static str {
    match (state, held.map(|account| account.mechanism)) {
        _ if escapes => "none",
        (_, Some(Mechanism::Signals)) => "signals",
        (State::Outside | State::Executing | State::Confined, _) => "freeze",
        (State::Notified, _) => "seccomp",
        _ => "preload",
    }
}

fn explain(reason: Reason) -> Option<&'static str> {
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
        Reason::Hidden => "hides its I/O from its user",
        Reason::Memory => "stands still, as others wait for memory",
    })
}

/// Why a process is not held: nobody can or may hold it, it executed a program in which our library
/// never reported, or it filters its own system calls.
fn escape(member: &Member, outside: Option<Account>, held: Option<Account>) -> Option<String> {
    if held.is_some() {
        return None;
    }
    let why = match member.state() {
        State::Outside => {
            let reason = outside.map_or(Reason::None, |account| account.reason);
            return Some(explain(reason).unwrap_or("nobody watches its class").to_owned());
        }
        State::Executing => None,
        State::Confined => explain(Reason::Confined),
        State::Free | State::Claimed | State::Active | State::Notified => return None,
    };
    let path = std::fs::read_link(format!("/proc/{}/exe", member.process()))
        .unwrap_or_else(|_| PathBuf::from("its program"));
    let kind = program::kind(&path);
    let why = why.or_else(|| kind.obstacle()).unwrap_or("has not loaded the library");
    Some(format!("{} {why}", path.display()))
}
