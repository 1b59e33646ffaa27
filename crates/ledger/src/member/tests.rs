use super::*;

//= discnice/4.3-rough
//= discnice/7-own-account
#[test]
fn every_byte_is_entered_once() {
    let books = Books::new();
    assert_eq!(books.enter(Charged { read: 10, written: 4 }), Charged { read: 10, written: 4 });
    assert_eq!(books.enter(Charged { read: 12, written: 4 }), Charged { read: 2, written: 0 });
    assert_eq!(books.enter(Charged { read: 11, written: 9 }), Charged { read: 0, written: 5 });
    assert_eq!(books.charged(), Charged { read: 12, written: 9 });
}

#[test]
fn what_no_account_can_do_is_not_entered() {
    let (books, of) = (Books::new(), |read| Charged { read, written: 0 });
    let _ = books.enter(of(100));
    assert_eq!(books.enter(of(u64::MAX)).read, 0, "misread");
    assert_eq!(books.enter(of(110)).read, 0);
    assert_eq!(books.enter(of(120)).read, 10, "it counts again");
    assert_eq!(books.enter(of(20)).read, 0, "one that was late");
    assert_eq!(books.enter(of(121)).read, 1);
}

//= rate-windows/7-user-level
#[test]
fn a_dead_members_slot_is_taken_over() {
    let member = Member::new();
    assert!(member.claim(7, Charged::default(), |_| true));
    assert!(!member.claim(8, Charged::default(), |_| true), "7 is alive");
    let before = member.generation();
    assert!(member.claim(8, Charged { read: 5, written: 0 }, |_| false));
    assert_eq!((member.process(), member.generation()), (8, before + 1));
    assert_eq!(member.books().charged().read, 5);
    member.release();
    assert!(member.claim(9, Charged::default(), |_| true));
}

#[test]
fn what_a_supervisor_charged_stays_charged() {
    let member = Member::new();
    assert!(member.claim(7, Charged::default(), |_| true));
    member.books().enter(Charged { read: 5, written: 0 });
    member.set_state(State::Notified);
    assert!(member.claim(7, Charged::default(), |_| true));
    assert_eq!((member.state(), member.books().charged().read), (State::Active, 5));
    assert!(member.claim(7, Charged::default(), |_| true), "another process of this number");
    assert_eq!(member.books().charged().read, 0);
}

#[test]
fn names_are_cut() {
    let member = Member::new();
    member.set_name(b"a-very-long-program-name");
    assert_eq!(&member.name(), b"a-very-long-prog");
}
