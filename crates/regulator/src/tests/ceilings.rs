//! What the user's own policy allows, and how that ends.

use discnice_ledger::Class;
use discnice_ledger::member::{Books, Charged};
use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Moment, Nanos, Rate};

use super::{RATE, machine};
use crate::tests::simulation::class;
use crate::{Flow, Host, Regulator, ledger};

/// A class with limits of the disk and of the network, of which an answer leaves next to nothing until then.
fn advised(now: Moment, until: Moment) -> &'static Class {
    let class = class(RATE);
    let limits = Resource::ALL
        .into_iter()
        .fold(Limits::UNLIMITED, |limits, one| limits.with(one, Rate::per_second(RATE)));
    class.set_limits(now, &limits);
    class.advise(now, &[Rate::per_second(1000); Resource::COUNT], until);
    assert_eq!(class.meter(Resource::Net).rate(), Rate::per_second(1000));
    class
}

#[test]
fn an_answer_of_a_policy_that_hangs_ends_whatever_the_class_does() {
    let (machine, books) = (machine(1 << 20), Books::new());
    let (now, until) = (machine.now(), machine.now().plus(Nanos::SECOND));
    let charge = |class: &'static Class| {
        let _ = ledger::charge(class, &books, until, Charged::default());
    };
    let charge_traffic = |class: &'static Class| {
        let _ = ledger::charge_traffic(class, until, [0, 0]);
    };
    let reserve_traffic = |class: &'static Class| {
        machine.wait(class.changes(), 0, until);
        let _ = Regulator::new(&machine, class, &books).reserve_traffic(Flow::Up, 1);
    };
    let ways: [(&str, &dyn Fn(&'static Class)); 3] = [
        ("held from outside", &charge),
        ("its traffic held from outside", &charge_traffic),
        ("the library's sockets", &reserve_traffic),
    ];
    for (what, way) in ways {
        let class = advised(now, until);
        way(class);
        assert_eq!(class.meter(Resource::Net).rate(), Rate::per_second(RATE), "{what}");
        assert_eq!(class.total().rate(), Rate::per_second(RATE), "{what}");
    }
}
