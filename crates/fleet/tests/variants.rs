//! The script in any order of events, and wrong variants of it, each of which must be found out by a short list of
//! events.

mod common;

use std::cell::RefCell;

use common::model::{Master, Model, Way, script};
use common::server::{self, Server};
use discnice_fleet::Settings;
use discnice_requirements::skip;
use discnice_units::{Nanos, Rate};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

const MACHINES: usize = 3;
const CAP: u64 = 1_000_000;
/// Seconds.
const LEASE: u64 = 10;

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// A machine wants so many thousandths of the cap, and calls.
    Call(usize, u64, Way),
    /// A call that is late arrives.
    Arrival(usize),
    /// So many tenths of a second pass.
    Time(u64),
    /// A machine leaves, or ends without a word, and another starts in its place.
    New(usize, Way),
    /// The server is killed and comes back without its table, or with one of before.
    Restart { empty: bool },
    /// A machine calls the other server from now on.
    Change(usize),
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        6 => Just(Way::Answered),
        2 => Just(Way::Unanswered),
        1 => Just(Way::Lost),
        2 => Just(Way::Late),
    ]
}

fn step(servers: usize) -> impl Strategy<Value = Step> {
    let machine = || 0..MACHINES;
    let restarts = u32::from(servers == 1);
    prop_oneof![
        10 => (machine(), prop_oneof![Just(2000u64), 0..1000u64], way())
            .prop_map(|(place, wants, way)| Step::Call(place, wants, way)),
        3 => any::<usize>().prop_map(Step::Arrival),
        4 => (1..150u64).prop_map(Step::Time),
        2 => (machine(), way()).prop_map(|(place, way)| Step::New(place, way)),
        restarts => any::<bool>().prop_map(|empty| Step::Restart { empty }),
        2 * (1 - restarts) => machine().prop_map(Step::Change),
    ]
}

/// Two databases of one server stand for two servers.
struct Bench {
    server: Server,
    life: u64,
}

impl Bench {
    fn master(&mut self, database: usize) -> Master {
        let mut connection = self.server.connect();
        redis::cmd("SELECT").arg(database).query::<()>(&mut connection).unwrap();
        self.life += 1;
        Master { connection: Some(connection), run: format!("life{}", self.life), set_by: 0 }
    }

    /// Takes the steps; an error says which of them let all together move more than the cap.
    fn run(
        &mut self,
        servers: usize,
        changes: &[(&str, &str)],
        steps: &[Step],
    ) -> Result<(), TestCaseError> {
        let mut first = self.server.connect();
        redis::cmd("FLUSHALL").query::<()>(&mut first).unwrap();
        let (cap, floor) = (Rate::per_second(CAP), Rate::per_second(4096));
        let settings = Settings::new(cap, Some(floor), Some(10), Some(LEASE * 1000)).unwrap();
        let masters = (0..servers).map(|database| self.master(database)).collect();
        let mut model = Model::new(settings, masters, script(changes));
        [0.98, 1.0, 1.02].into_iter().for_each(|speed| {
            model.add(speed, 0);
        });
        // A new server learns, and there is nothing to learn.
        model.call(0, Way::Answered, 0);
        for _ in 0..20 {
            model.now = model.now.plus(Nanos::from_millis(1000));
            (0..servers).for_each(|server| {
                model.machines[0].server = server;
                model.call(0, Way::Answered, 0);
            });
        }
        (0..MACHINES).for_each(|place| model.machines[place].server = 0);
        for (number, step) in steps.iter().enumerate() {
            self.take(&mut model, step);
            let sum = model.in_force();
            if sum > CAP {
                return Err(TestCaseError::fail(format!("{sum} of {CAP} after step {number}")));
            }
        }
        Ok(())
    }

    fn take(&mut self, model: &mut Model, step: &Step) {
        match step {
            Step::Call(place, wants, way) => {
                model.machines[*place].wants = wants * CAP / 1000;
                model.call(*place, *way, 0);
            }
            Step::Arrival(which) => model.deliver(*which),
            Step::Time(tenths) => model.now = model.now.plus(Nanos::from_millis(100 * tenths)),
            Step::New(place, way) => {
                model.leave(*place, *way);
                model.start(*place);
            }
            Step::Restart { empty } => {
                if *empty {
                    let connection = model.masters[0].connection.as_mut().unwrap();
                    redis::cmd("FLUSHALL").query::<()>(connection).unwrap();
                }
                model.masters[0] = self.master(0);
                model.set(0);
            }
            Step::Change(place) => {
                let machine = &mut model.machines[*place];
                machine.server = (machine.server + 1) % model.masters.len();
            }
        }
    }
}

/// Looks for steps by which the script, with these changes, breaks its promise; the shortest found.
fn counterexample(servers: usize, changes: &[(&str, &str)], cases: u32) -> Option<Vec<Step>> {
    let bench = RefCell::new(Bench { server: Server::start(&[]), life: 0 });
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let steps = proptest::collection::vec(step(servers), 1..40);
    let found = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    )
    .run(&steps, |steps| bench.borrow_mut().run(servers, changes, &steps));
    match found {
        Ok(()) => None,
        Err(TestError::Fail(why, steps)) => {
            println!("{why}: {steps:#?}");
            Some(steps)
        }
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// Each wrong variant is found out, and by no more than so many steps.
fn is_found_out(servers: usize, changes: &[(&str, &str)], most: usize) {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let steps = counterexample(servers, changes, 2000).expect("the variant breaks the promise");
    assert!(steps.len() <= most, "{} steps", steps.len());
}

#[test]
fn no_order_of_events_exceeds_the_cap() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let found = counterexample(1, &[], 300);
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn a_shrink_that_is_free_at_once_is_found_out() {
    is_found_out(1, &[("local kept = math.max(grant, has)", "local kept = grant")], 4);
}

#[test]
fn two_servers_at_once_are_found_out() {
    is_found_out(2, &[], 4);
}

#[test]
fn a_late_call_that_counts_is_found_out() {
    is_found_out(1, &[("if q and seq <= q then", "if false then")], 8);
}

#[test]
fn a_server_that_does_not_learn_is_found_out() {
    is_found_out(1, &[("math.floor(longest * 1.1)", "0")], 4);
}

#[test]
fn a_lease_that_is_forgotten_early_is_found_out() {
    is_found_out(1, &[("math.floor(lease * 1.05)", "math.floor(lease * 0.5)")], 6);
}
