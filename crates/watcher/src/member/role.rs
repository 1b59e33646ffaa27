//! What charges a process, and why.

use discnice_ledger::outside::Reason;
use discnice_ledger::{Class, Member, State};
use discnice_sys::time;

use super::Watched;
use crate::accounting::Rest;
use crate::others::disks;

/// What charges the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// We do.
    Outside,
    /// Our library in it, unless it does I/O that no call shows.
    Preloaded,
}

impl Watched {
    /// Returns true if its role has changed since the last look, so that another party charges it.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.member().is_some_and(|member| role(self.class, member.state()) != self.role)
    }

    /// Takes the role that its state gives us now. A command that is to be held from outside was perhaps looked at before that
    /// was decided.
    pub(crate) fn follow_role(&mut self) {
        let state = self.member().filter(|_| self.has_changed()).map(Member::state);
        if let Some(state) = state {
            self.take_part(state);
        }
    }

    /// Returns true if no library of ours is in the process, which would charge what goes through its sockets.
    #[must_use]
    pub(crate) fn is_without_library(&self) -> bool {
        self.role == Role::Outside && self.reason.is_without_library()
            || self.member().is_some_and(|member| member.state() == State::Notified)
    }

    /// The devices that its files lie on, without those that its library notes.
    pub(crate) fn disks(&self) -> Vec<u64> {
        if self.role == Role::Preloaded && !self.is_without_library() {
            disks::readable(self.id())
        } else {
            disks::of(self.id())
        }
    }

    /// Tells the class how the process is held, and why.
    pub(super) fn note_how(&mut self, reason: Reason) {
        if self.holding.pause.is_told {
            return self.note_paused();
        }
        let mechanism = match self.role {
            Role::Outside => Some(self.holding.mechanism()),
            Role::Preloaded if reason == Reason::RanAhead => Some(self.holding.mechanism()),
            Role::Preloaded => None,
        };
        if let Some(held) = self.held() {
            held.set_how(mechanism, reason);
        }
    }

    /// Returns what charges a process in this state, and why.
    pub(super) fn part_in(&self, state: State) -> (Role, Reason) {
        let role = role(self.class, state);
        let reason = match (role, state) {
            (Role::Preloaded, _) if self.reason == Reason::RanAhead => Reason::RanAhead,
            (Role::Preloaded, _) => Reason::None,
            (_, State::Executing) => Reason::NoLibrary,
            (_, State::Confined) => Reason::Confined,
            (_, State::Outside)
                if self.class.is_per_child()
                    && matches!(self.reason, Reason::None | Reason::NoLibrary) =>
            {
                Reason::PerChild
            }
            _ => self.reason,
        };
        (role, reason)
    }

    /// Takes over, or leaves to the library, what the process is charged for in this state.
    pub(super) fn take_part(&mut self, state: State) {
        let (role, reason) = self.part_in(state);
        let rest = self.accounting.rest_at(time::now(), rest(role, state));
        self.accounting.account.set_rest(rest);
        if (role, reason) != (self.role, self.reason) {
            (self.role, self.reason) = (role, reason);
            self.schedule.look_closely(time::now());
            self.note_how(reason);
        }
    }
}

/// What charges a process in this state.
pub(super) fn role(class: &Class, state: State) -> Role {
    match state {
        // It reads by calls of its own, some of which would return short counts if it were interrupted.
        State::Confined if !class.watcher().is_strict() => Role::Preloaded,
        State::Active | State::Claimed | State::Notified | State::Free => Role::Preloaded,
        State::Executing | State::Confined | State::Outside => Role::Outside,
    }
}

/// What of the account of a process in this state is not its own.
pub(super) fn rest_in(class: &Class, state: State) -> Rest {
    rest(role(class, state), state)
}

/// What of a process's account is not its own, with this role in this state.
pub(super) fn rest(role: Role, state: State) -> Rest {
    match (role, state) {
        // The children of one that is confined do not charge themselves either.
        (Role::Outside, _) | (_, State::Confined) => Rest::Known,
        (Role::Preloaded, _) => Rest::Children,
    }
}
