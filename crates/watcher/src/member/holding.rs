//! How one process is held now.

use discnice_ledger::outside::Mechanism;
use discnice_processes::tree::Process;
use discnice_sys::time;
use discnice_units::{Moment, Nanos};

use crate::holding::{Grip, Guards, Hold, Refused, best, next_best};
use crate::tuning;

/// The hold on one process.
#[derive(Debug)]
pub(super) struct Holding {
    hold: Box<dyn Hold>,
    stopped_since: Option<Moment>,
    press_at: Moment,
    /// How often it moved bytes though it was held.
    slips: u32,
    /// Set while something of it is still to be let go.
    is_letting_go: bool,
    /// Set if nothing could hold it when it was to be held last.
    is_unheld: bool,
    /// Until when it is not held.
    refused_until: Moment,
    debuggers: DebuggerWindow,
    pub(super) pause: Pause,
    /// Until when it stands for the memory that it has, if it is to.
    pub(super) rests_until: Option<Moment>,
}

/// A pause that the user asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pause {
    /// The user wants it to stand.
    pub(super) is_wanted: bool,
    /// It does so, and its class says so.
    pub(super) is_told: bool,
}

/// When way was made for a debugger last, and for how long lately.
#[derive(Debug, Clone, Copy, Default)]
struct DebuggerWindow {
    at: Moment,
    used: Nanos,
}

impl DebuggerWindow {
    /// Opens it once more; false if it has been open for long enough.
    fn open(self, now: Moment) -> Option<Self> {
        let passed = now.since(self.at);
        let left = self.used.0.saturating_sub(passed.0 / tuning::holding::DEBUGGER_REFILL);
        let used = Nanos(left).plus(passed.min(tuning::holding::DEBUGGER_WINDOW));
        (used <= tuning::holding::DEBUGGER_BUDGET).then_some(Self { at: now, used })
    }
}

impl Holding {
    /// Begins with the best mechanism, and holds nothing.
    pub(super) fn new(process: Process) -> Self {
        Self {
            hold: best(process),
            stopped_since: None,
            press_at: Moment::FIRST,
            slips: 0,
            is_letting_go: false,
            is_unheld: false,
            refused_until: Moment::FIRST,
            debuggers: DebuggerWindow::default(),
            pause: Pause::default(),
            rests_until: None,
        }
    }

    /// By what it is held.
    /// The mechanism as the class's books have it.
    pub(super) fn mechanism(&self) -> Mechanism {
        self.hold.mechanism()
    }

    /// The mechanism for which charges count: none if nothing could hold the process.
    pub(super) fn charged_mechanism(&self) -> Option<Mechanism> {
        (!self.is_unheld).then(|| self.mechanism())
    }

    /// Returns true if the process is stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped_since.is_some()
    }

    /// Returns true while something of it is still to be let go.
    pub(super) fn is_letting_go(&self) -> bool {
        self.is_letting_go
    }

    /// Returns true if it, or something of it, is held.
    pub(super) fn is_held(&self) -> bool {
        self.is_stopped() || self.is_letting_go
    }

    /// Until when it is not held, if that is not over.
    pub(super) fn refused_until(&self, now: Moment) -> Option<Moment> {
        Some(self.refused_until).filter(|until| now < *until)
    }

    /// Returns true if the threads were looked at so lately that they need not be again.
    pub(super) fn is_pressed(&self, now: Moment) -> bool {
        now < self.press_at
    }

    /// Stops what is awake of the process, which has `moved` bytes since the last look. `None` if it still moves bytes
    /// long after its own tracer was stopped in its place.
    pub(super) fn press(&mut self, now: Moment, moved: bool) -> Option<Result<Grip, Refused>> {
        // A process that waits for a pipe most of the time is asleep whenever it is to be stopped.
        self.slips += u32::from(moved && self.is_stopped());
        let slips = self.slips >= tuning::holding::SLIPS;
        // At first it ends its call, and the tracer may be let go for its own sake in between.
        let is_late = |since: Moment| now >= since.plus(tuning::holding::TRACER_DOUBT);
        if slips && moved && self.hold.stops_tracer() && self.stopped_since.is_some_and(is_late) {
            return None;
        }
        let all = self.pause.is_wanted || slips;
        Some(if all { self.hold.press_all() } else { self.hold.press() })
    }

    /// Notes that the process was pressed at `now`; returns when that was done.
    pub(super) fn note_pressed(&mut self, now: Moment) -> Moment {
        self.is_unheld = false;
        // Threads that could not be let go yet, as they wait for a disk, stay.
        self.is_letting_go = false;
        if self.stopped_since.is_none() {
            self.stopped_since = Some(now);
        }
        let after = time::now();
        self.press_at = after.plus(Nanos(after.since(now).0 * tuning::holding::PRESS_SHARE));
        after
    }

    /// Takes the next best mechanism; returns false if there is none.
    pub(super) fn fall_back(&mut self, process: Process, guards: &Guards) -> bool {
        let next = next_best(process, &*self.hold, guards);
        next.map(|next| self.hold = next).is_some()
    }

    /// Takes this mechanism.
    pub(super) fn replace(&mut self, hold: Box<dyn Hold>) {
        self.hold = hold;
    }

    /// Takes the best mechanism anew if its tracer stood for the process; returns whether that was so.
    pub(super) fn leave_tracer(&mut self, process: Process) -> bool {
        let was_traced = self.hold.stops_tracer();
        if was_traced {
            self.hold = best(process);
        }
        was_traced
    }

    /// Holds it no more until then.
    pub(super) fn give_up(&mut self, until: Moment) {
        self.refused_until = until;
        (self.is_unheld, self.pause.is_told) = (true, false);
    }

    /// Opens the window in which a debugger may trace the process. `None` if that is not needed, or has been granted
    /// for long enough; `is_traced` says whether another program traces it already.
    pub(super) fn open_window(
        &mut self,
        now: Moment,
        is_traced: impl FnOnce() -> bool,
    ) -> Option<Moment> {
        let until = now.plus(tuning::holding::DEBUGGER_WINDOW);
        if self.mechanism() != Mechanism::Ptrace
            || self.hold.stops_tracer()
            || self.refused_until >= until
        {
            return None;
        }
        let opened = self.debuggers.open(now)?;
        if !self.is_stopped() && is_traced() {
            return None;
        }
        self.debuggers = opened;
        Some(until)
    }

    /// Does not hold it until then, and does not count that as unheld.
    pub(super) fn refrain(&mut self, until: Moment) {
        self.refused_until = until;
    }

    /// Ends a stop; returns since when it was stopped.
    pub(super) fn end_stop(&mut self) -> Option<Moment> {
        let since = self.stopped_since.take()?;
        self.is_letting_go = true;
        let slips = tuning::holding::SLIPS;
        self.slips = if self.slips < slips { 0 } else { slips - 1 };
        Some(since)
    }

    /// Lets go of what is still to be let go, as far as it can be now.
    pub(super) fn release(&mut self) {
        if self.is_letting_go {
            self.is_letting_go = !self.hold.release();
        }
    }

    /// Takes note of what has stopped or ended.
    pub(super) fn tend(&mut self) {
        if self.is_held() {
            self.hold.tend();
        }
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tracer that can be stopped, and stops nothing.
    #[derive(Debug)]
    struct Debugger;

    impl Hold for Debugger {
        fn mechanism(&self) -> Mechanism {
            Mechanism::Ptrace
        }

        fn stops_tracer(&self) -> bool {
            true
        }

        fn press(&mut self) -> Result<Grip, Refused> {
            Ok(Grip::Firm)
        }

        fn tend(&mut self) {}

        fn release(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn a_traced_process_may_move_on_for_a_while_after_its_tracer_was_stopped() {
        let mut holding = Holding::new(Process::find(std::process::id()).unwrap());
        holding.replace(Box::new(Debugger));
        let begun = time::now();
        holding.note_pressed(begun);
        for look in 1..2 * tuning::holding::SLIPS {
            let at = begun.plus(Nanos::from_millis(look.into()));
            assert!(holding.press(at, true).is_some(), "look {look}");
        }
        let late = begun.plus(tuning::holding::TRACER_DOUBT);
        assert!(holding.press(late, false).is_some(), "it stands by now");
        assert!(holding.press(late, true).is_none(), "a debugger lets it run");
    }
}
