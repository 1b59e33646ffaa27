//! A class in memory of our own.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;

use discnice_units::{Bytes, Moment, Nanos, Rate};

use super::membership::PROBES;
use super::*;
use crate::member::{Charged, MemberId, State};
use crate::policy::{Choice, Limits, Memory, Pace, Resources, When};
use crate::trace::Record;

fn memory() -> NonNull<u8> {
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(Class::SIZE, 4096).unwrap()) })
        .unwrap()
}

fn class() -> &'static Class {
    // SAFETY: fresh memory of the right size that is never freed.
    unsafe { Class::create(memory(), Class::SIZE, 42, b"tests", 1) }.unwrap()
}

#[test]
fn only_our_own_block_is_adopted() {
    let start = memory();
    // SAFETY: the memory is as long as said and never freed, in all of these.
    unsafe {
        assert_eq!(Class::adopt(start, 100, None).err(), Some(Foreign::Truncated));
        assert_eq!(Class::adopt(start, Class::SIZE, None).err(), Some(Foreign::NotAClass));
        let class = Class::create(start, Class::SIZE, 42, b"tests", 1).unwrap();
        assert!(Class::adopt(start, Class::SIZE, Some(42)).is_ok());
        let other = Class::adopt(start, Class::SIZE, Some(43));
        assert_eq!(other.err(), Some(Foreign::OtherClass));
        class.header.version.store(VERSION + 1, Ordering::Relaxed);
        let newer = Class::adopt(start, Class::SIZE, Some(42));
        assert_eq!(newer.err(), Some(Foreign::OtherVersion(VERSION + 1)));
    }
}

#[test]
fn limits_and_names_are_kept() {
    let class = class();
    assert!(class.limited().is_empty());
    let limits = Resource::ALL
        .into_iter()
        .fold(Limits::UNLIMITED, |limits, one| limits.with(one, Rate::per_second(7 + one as u64)));
    let memory = Memory::DEFAULT.with_low(Bytes::new(1 << 26)).with_high(None);
    let pace = Pace::DEFAULT.with_policy(Choice::Sleep).with_window(Some(Nanos::from_millis(700)));
    let limits = limits.with_at_least(Some(Rate::per_second(3))).with_per_child(true);
    let limits = limits.with_loopback(true).with_memory(memory).with_pace(pace);
    class.set_limits(Moment(5), &limits);
    assert_eq!(class.limits(), limits);
    assert_eq!(class.limited().bits(), 0xff);
    assert_eq!(class.window(), Nanos::from_millis(700));
    class.header.pace.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(class.window(), Nanos(5 * Nanos::SECOND.0), "a scribbled one");
    assert!(class.name().starts_with(b"tests\0"));
    class.set_limits(Moment(6), &Limits::UNLIMITED);
    assert!(class.limited().is_empty() && !class.counts_loopback());
}

#[test]
fn only_what_has_a_threshold_is_owed() {
    let class = class();
    let now = Moment(100 * Nanos::SECOND.0);
    let limits = Limits::UNLIMITED.with(Resource::NetUp, Rate::per_second(1000));
    class.set_limits(now, &limits);
    assert!(!class.is_limited(), "the disk is free");
    for resource in Resource::ALL {
        class.meter(resource).settle(class.pace(), now, 0, 5000);
    }
    assert!(class.is_calm());
    assert!(!class.is_calm_in(Resources::NETWORK));
    assert!(class.is_calm_in(Resource::NetDown.only()));
}

#[test]
fn a_trace_ends_with_the_first_call_after_it_was_last_asked_for() {
    let class = class();
    let mut reader = class.trace().reader();
    let call = |at| Record { at: Moment(at), ..Record::default() };
    assert!(class.is_unheld() && !class.is_traced());
    class.trace_until(Moment(10));
    assert!(class.is_traced() && !class.is_unheld() && !class.is_held_on_disk_alone());
    assert!(!class.is_limited() && class.limited().is_empty(), "a trace holds nothing");
    class.set_limits(Moment(1), &Limits::UNLIMITED);
    assert!(class.is_traced(), "a change of the limits ends no trace");
    class.record(&call(9));
    class.record(&call(10));
    assert!(!class.is_traced() && class.is_unheld());
    let mut seen = Vec::new();
    reader.read(false, |record| seen.push(record.at));
    assert_eq!(seen, [Moment(9)]);
}

#[test]
fn members_come_and_go() {
    let class = class();
    let (id, member) = class.register(100, Charged::default(), |_| true).unwrap();
    assert_eq!(class.member(id, 100).map(Member::process), Some(100));
    assert!(class.member(id, 101).is_none());
    assert_eq!(class.living(|_| true).count(), 1);
    assert_eq!(class.living(|_| false).count(), 0);
    member.release();
    assert!(class.member(id, 100).is_none());
    assert!(class.member(MemberId { index: u32::MAX, generation: 0 }, 100).is_none());
}

/// A process of which the first slot is that of this one.
fn neighbour(process: u32) -> u32 {
    process + MEMBERS as u32
}

#[test]
fn what_registers_while_it_is_expected_keeps_its_slot() {
    let class = class();
    let (child, other) = (100, neighbour(100));
    class.register(other, Charged::default(), |_| true).unwrap();
    let own = Cell::new(None);
    class.expect(child, |process| {
        if process == other && own.get().is_none() {
            let (id, member) = class.register(child, Charged::default(), |_| true).unwrap();
            member.books().enter(Charged { read: 5, written: 0 });
            own.set(Some(id));
        }
        true
    });
    let member = class.member(own.get().unwrap(), child).expect("it is the child's still");
    assert_eq!((member.state(), member.books().charged().read), (State::Active, 5));
}

#[test]
fn a_process_keeps_its_slot_when_an_earlier_one_has_become_free() {
    let class = class();
    let (child, other) = (100, neighbour(100));
    let (_, first) = class.register(other, Charged::default(), |_| true).unwrap();
    class.expect(child, |_| true);
    first.release();
    let (_, member) = class.register(child, Charged::default(), |_| true).unwrap();
    assert_eq!(member.state(), State::Active);
    let listed = class.living(|_| true).filter(|member| member.process() == child);
    assert_eq!(listed.count(), 1);
}

#[test]
fn a_full_neighbourhood_is_counted() {
    let class = class();
    // Process ids that differ by the number of slots start at the same one.
    let process = |n: usize| 100 + (n * MEMBERS) as u32;
    for n in 0..PROBES {
        assert!(class.register(process(n), Charged::default(), |_| true).is_some());
    }
    assert!(class.register(process(PROBES), Charged::default(), |_| true).is_none());
    assert_eq!(class.unlisted(), 1);
    let dead = class.register(process(PROBES), Charged::default(), |_| false);
    assert!(dead.is_some(), "all are dead");
}

#[test]
fn an_expected_process_is_listed_once() {
    let class = class();
    class.expect(100, |_| true);
    class.expect(100, |_| true);
    let states: Vec<State> = class.living(|_| true).map(Member::state).collect();
    assert_eq!(states, [State::Executing]);
    let (_, member) = class.register(100, Charged::default(), |_| true).unwrap();
    assert_eq!(member.state(), State::Active);
    class.expect(100, |_| true);
    assert_eq!(class.living(|_| true).count(), 1);
    assert_eq!(member.state(), State::Active, "it has registered already");
}

#[test]
fn a_lease_is_a_ceiling_that_ends_without_its_holder() {
    let class = class();
    let (now, later) = (Moment(100 * Nanos::SECOND.0), Moment(130 * Nanos::SECOND.0));
    let rate = |units| Rate::per_second(units);
    assert!(class.join_fleet(now));
    assert_eq!(class.total().rate(), rate(crate::fleet::LEAST));
    assert!(
        class.is_limited() && class.total().threshold().is_unlimited(),
        "no threshold of its own"
    );
    class.write_lease(now, (5_000_000, 100_000), later);
    assert_eq!(class.total().rate(), rate(5_100_000));
    assert!(!class.mind_lease(now) && !class.mind_lease(later.minus(Nanos(1))));
    let limits = Limits::UNLIMITED.with(Resource::Total, rate(2_000_000));
    class.set_limits(now, &limits);
    assert_eq!(class.total().rate(), rate(2_000_000), "the lower of both");
    assert!(class.mind_lease(later), "by a member");
    assert_eq!(class.total().rate(), rate(100_000));
    assert!(!class.mind_lease(later));
    // A holder that was stopped before it applied an old lease.
    class.total().set_rate(class.pace(), later, rate(5_100_000));
    assert!(class.mind_lease(later));
    assert_eq!(class.total().rate(), rate(100_000));
    class.leave_fleet(later);
    assert_eq!(class.total().rate(), rate(2_000_000));
}

#[test]
fn a_lease_holds_while_a_class_that_gives_way_is_free() {
    let class = class();
    let limits = Limits::UNLIMITED.with_when(crate::policy::When::Busy);
    class.set_limits(Moment(5), &limits);
    assert!(class.is_free() || class.limited().is_empty());
    class.join_fleet(Moment(5));
    class.write_lease(Moment(5), (5_000_000, 100_000), Moment(50));
    assert_eq!(class.total().rate(), Rate::per_second(5_100_000));
    assert!(class.is_limited());
}

#[test]
fn a_class_with_a_total_is_held_when_it_is_used_up() {
    let class = class();
    let (now, pace) = (Moment(100 * Nanos::SECOND.0), class.pace());
    let total = |bytes| Limits::UNLIMITED.with_disk_total(Some(Bytes::new(bytes)));
    class.total().settle(pace, now, 0, 7000);
    assert!(class.is_unheld() && !class.mind_disk_total());
    class.set_limits(now, &total(5000));
    assert!(class.is_limited() && class.limited().is_empty(), "looked at, without a rate");
    assert!(class.is_calm() && !class.is_used_up(), "what was moved before does not count");
    class.total().settle(pace, now, 0, 4999);
    assert!(!class.mind_disk_total() && class.is_calm());
    class.total().settle(pace, now, 0, 1);
    let before = class.changes().load(Ordering::Relaxed);
    assert!(class.mind_disk_total() && class.is_used_up() && !class.is_calm());
    assert_ne!(class.changes().load(Ordering::Relaxed), before, "the watcher looks");
    assert!(!class.mind_disk_total(), "once");
    class.total().credit(pace, now, 1);
    assert!(class.mind_disk_total() && class.is_calm(), "deleted before it was written");
    class.total().settle(pace, now, 0, 1);
    assert!(class.mind_disk_total());
    class.set_limits(now, &total(5001));
    assert!(!class.is_used_up(), "raised");
    assert_eq!(class.disk_total_used(), Bytes::new(5000), "it goes on counting");
    class.set_limits(now, &total(100));
    assert!(class.is_used_up(), "lowered");
    class.count_anew();
    assert!(class.mind_disk_total() && !class.is_used_up());
    class.set_limits(now, &Limits::UNLIMITED);
    assert!(class.is_unheld() && class.disk_total().is_none());
}

#[test]
fn a_total_of_a_class_that_gives_way_holds_whatever_others_do() {
    let class = class();
    let (now, pace) = (Moment(100 * Nanos::SECOND.0), class.pace());
    let limits = Limits::UNLIMITED
        .with(Resource::Total, Rate::per_second(1 << 20))
        .with_when(crate::policy::When::Busy)
        .with_disk_total(Some(Bytes::new(10)));
    class.set_limits(now, &limits);
    assert!(!class.is_free() && class.limited().is_empty());
    class.total().settle(pace, now, 0, 10);
    assert!(class.mind_disk_total() && class.is_used_up());
    class.hold_all(now);
    assert!(class.is_used_up() && class.is_limited_in(Resource::Total.only()));
    assert_eq!(class.limits(), limits);
}

//= discnice/4.1-own-policy
#[test]
fn advice_holds_below_the_thresholds_until_it_ends() {
    let class = class();
    let (now, until) = (Moment(100 * Nanos::SECOND.0), Moment(101 * Nanos::SECOND.0));
    let rate = Rate::per_second;
    let pace = Pace::DEFAULT.with_policy(Choice::Program);
    class.set_limits(now, &Limits::UNLIMITED.with(Resource::Total, rate(1000)).with_pace(pace));
    let mut advised = [Rate::UNLIMITED; Resource::COUNT];
    advised[Resource::Total as usize] = rate(400);
    advised[Resource::Net as usize] = rate(70);
    assert!(class.advise(now, &advised, until), "changed");
    assert_eq!(class.total().rate(), rate(400));
    assert_eq!(class.meter(Resource::Net).rate(), rate(70));
    assert!(!class.advise(now, &advised, until), "the same again");
    advised[Resource::Total as usize] = rate(5000);
    assert!(class.advise(now, &advised, until));
    assert_eq!(class.total().rate(), rate(1000), "no more than the threshold");
    assert!(!class.mind_advice(now) && class.mind_advice(until), "it ends once");
    assert!(!class.mind_advice(until));
    assert_eq!(class.meter(Resource::Net).rate(), Rate::UNLIMITED);
    assert!(class.limited() == Resource::Total.only());
}

#[test]
fn one_process_asks_the_users_program() {
    let class = class();
    let advice = class.advice();
    assert!(advice.claim(7, |_| true) && advice.claim(7, |_| true) && !advice.claim(8, |_| true));
    assert!(advice.claim(8, |_| false), "the first died");
    advice.release(8);
    advice.note_health(crate::advice::Health::Silent);
    assert!(advice.claim(9, |_| true) && advice.health() == crate::advice::Health::Silent);
}

#[test]
fn a_lease_does_not_make_a_piece_of_work_longer() {
    let (class, now) = (class(), Moment(100 * Nanos::SECOND.0));
    let time = Nanos::from_millis(300);
    for threshold in [Rate::UNLIMITED, Rate::per_second(100 << 20)] {
        let limits = Limits::UNLIMITED.with(Resource::Total, threshold).with_when(When::Busy);
        class.set_limits(now, &limits);
        class.join_fleet(now);
        class.write_lease(now, (10 << 20, 0), now.plus(Nanos::SECOND));
        assert_eq!(class.total().rate(), Rate::per_second(10 << 20));
        class.prolong(Direction::Read, (now, now), 0, time);
        let paid = class.total().frontier();
        assert!(paid <= now.plus(time), "{threshold:?}: {paid:?} at {now:?}");
        class.leave_fleet(now);
    }
}
