//! Another process of a class.

use discnice_ledger::Class;
use discnice_units::Moment;

/// A process that moves pieces one by one, each as soon as it has had the turns for it.
#[derive(Debug, Clone, Copy)]
pub struct Rival {
    class: &'static Class,
    piece: u64,
    /// What of the present piece has no turn yet.
    rest: u64,
    turn: Moment,
    /// Bytes that it has moved.
    pub moved: u64,
}

impl Rival {
    /// Creates one that begins now.
    pub fn new(class: &'static Class, piece: u64, now: Moment) -> Self {
        Self { class, piece, rest: 0, turn: now, moved: 0 }
    }

    /// Lets it go on until then.
    pub fn after(mut self, until: Moment) -> Self {
        while self.turn <= until {
            if self.rest == 0 {
                self.moved += self.piece;
                self.rest = self.piece;
            }
            let (total, pace) = (self.class.total(), self.class.pace());
            let turn = self.rest.min(total.turn(pace));
            self.turn = total.reserve(pace, self.turn, turn).expect("two make no long queue");
            self.rest -= turn;
        }
        self
    }
}
