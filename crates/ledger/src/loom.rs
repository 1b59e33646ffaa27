//! Model checks: every interleaving of two members, and of a member that dies.

use discnice_units::{Nanos, Rate};
use loom::sync::Arc;
use loom::thread;

use crate::member::{Charged, Member, State};
use crate::meter::Meter;
use crate::policy::Pace;

const NOW: Nanos = Nanos(1_000_000_000_000);
const RATE: u64 = 1_000_000;
const AMOUNT: u64 = 100_000;

//= rate-windows/3.1-aggregate
//= rate-windows/3.2-queue
#[test]
fn reservations_of_two_members_never_overlap() {
    loom::model(|| {
        let meter = Arc::new(Meter::new(Rate::per_second(RATE)));
        let reserve = |meter: Arc<Meter>| move || meter.reserve(Pace::DEFAULT, NOW, AMOUNT);
        let other = thread::spawn(reserve(Arc::clone(&meter)));
        let mine = meter.reserve(Pace::DEFAULT, NOW, AMOUNT).unwrap();
        let theirs = other.join().unwrap().unwrap();
        let apart = mine.max(theirs).minus(mine.min(theirs));
        assert!(apart >= Nanos::from_millis(49), "{apart}");
    });
}

#[test]
fn nothing_charged_is_lost_and_a_refund_is_exact() {
    loom::model(|| {
        let meter = Arc::new(Meter::new(Rate::per_second(RATE)));
        let other = {
            let meter = Arc::clone(&meter);
            thread::spawn(move || {
                let _ = meter.reserve(Pace::DEFAULT, NOW, AMOUNT);
                meter.settle(Pace::DEFAULT, NOW, AMOUNT, 0);
            })
        };
        meter.settle(Pace::DEFAULT, NOW, 0, RATE);
        other.join().unwrap();
        assert_eq!(meter.total(), RATE);
        let owed = meter.frontier().minus(NOW);
        assert!(owed >= Nanos::from_millis(900) && owed <= Nanos::from_millis(1010), "{owed}");
    });
}

#[test]
fn calming_down_never_forgets_a_new_debt() {
    loom::model(|| {
        let meter = Arc::new(Meter::new(Rate::per_second(RATE)));
        meter.settle(Pace::DEFAULT, Nanos(1), 0, 1);
        let other = {
            let meter = Arc::clone(&meter);
            thread::spawn(move || meter.calm_down(Pace::DEFAULT, NOW))
        };
        meter.settle(Pace::DEFAULT, NOW, 0, RATE);
        other.join().unwrap();
        assert!(meter.frontier() > NOW.plus(Nanos::from_millis(900)));
    });
}

#[test]
fn a_debt_is_rescaled_once_by_two_that_change_the_rate() {
    loom::model(|| {
        let meter = Arc::new(Meter::new(Rate::per_second(RATE)));
        meter.settle(Pace::DEFAULT, NOW, 0, RATE);
        let half = |meter: Arc<Meter>| {
            move || meter.set_rate(Pace::DEFAULT, NOW, Rate::per_second(RATE / 2))
        };
        let other = thread::spawn(half(Arc::clone(&meter)));
        half(Arc::clone(&meter))();
        other.join().unwrap();
        let owed = meter.frontier().minus(NOW);
        assert!(owed <= Nanos::from_millis(2050), "{owed}");
    });
}

#[test]
fn a_dead_members_slot_goes_to_one_claimer() {
    loom::model(|| {
        let member = Arc::new(Member::new());
        assert!(member.claim(1, Charged::default(), |_| true));
        let exists = |process| process != 1;
        let other = {
            let member = Arc::clone(&member);
            thread::spawn(move || member.claim(2, Charged::default(), exists))
        };
        let mine = member.claim(3, Charged::default(), exists);
        let theirs = other.join().unwrap();
        assert!(mine ^ theirs, "exactly one");
        assert_eq!(member.process(), if mine { 3 } else { 2 });
    });
}

#[test]
fn what_registers_while_it_is_expected_is_listed_once() {
    loom::model(|| {
        let member = Arc::new(Member::new());
        let parent = {
            let member = Arc::clone(&member);
            thread::spawn(move || member.expect(7, |_| true))
        };
        assert!(
            member.claim(7, Charged::default(), |_| true),
            "it would take another slot as well"
        );
        let generation = member.generation();
        parent.join().unwrap();
        assert_eq!((member.state(), member.generation()), (State::Active, generation));
    });
}
