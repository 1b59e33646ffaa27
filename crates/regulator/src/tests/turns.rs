//! How the members of a class share it.

use discnice_ledger::member::Books;
use discnice_units::Nanos;

use super::machine;
use super::simulation::{Rival, class, write};
use crate::{File, Host, Regulator, Thread};

const RATE: u64 = 4 << 20;

#[test]
fn a_member_gets_no_more_because_its_pieces_are_larger() {
    for piece in [64 << 10, 128 << 10, 400 << 10] {
        let (machine, class, books) = (machine(0), class(RATE), Books::new());
        let regulator = Regulator::new(&machine, class, &books);
        let (thread, file) = (Thread::default(), File::new());
        machine.rival.set(Some(Rival::new(class, piece, machine.now())));
        let end = machine.now().plus(Nanos(20 * Nanos::SECOND.0));
        let mut own = 0;
        while machine.now() < end {
            let piece = regulator.write_piece();
            write(&regulator, &machine, &thread, &file, piece);
            own += piece;
        }
        let rival = machine.rival.get().map_or(0, |rival| rival.moved);
        let share = own as f64 / (own + rival) as f64;
        assert!((0.4..0.6).contains(&share), "{share} beside pieces of {piece}");
        assert!((own + rival) * 100 > 20 * RATE * 97, "{own} and {rival} in 20 s");
    }
}
