//! What each machine gets of the budget: equal parts, or by weight, also after others leave or the server restarts; and
//! nothing beyond the number of nodes that was set.

mod common;

use common::model::{Model, SECOND, Way, master, script};
use common::server::{self, Server};
use discnice_fleet::Settings;
use discnice_fleet::script::Reply;
use discnice_requirements::skip;
use discnice_units::{Nanos, Rate};

fn settings(cap: u64, floor: u64, nodes: u64, lease: u64) -> Settings {
    let (cap, floor) = (Rate::per_second(cap), Rate::per_second(floor));
    Settings::new(cap, Some(floor), Some(nodes), Some(lease)).unwrap()
}

/// Without faults: every machine calls when it is due, for so many seconds.
fn calm(model: &mut Model, seconds: u64) {
    let end = model.now.plus(Nanos(seconds * SECOND));
    while model.now < end {
        model.now = model.now.plus(Nanos::from_millis(10));
        for place in 0..model.machines.len() {
            if model.machines[place].lives && model.machines[place].node.due() <= model.local(place)
            {
                model.call(place, Way::Answered, 0);
            }
        }
        assert!(model.in_force() <= model.settings.cap.get());
    }
}

fn small(server: &Server, machines: usize, wants: u64) -> Model {
    let settings = settings(100_000_000, 100_000, 100, 30_000);
    let mut model = Model::new(settings, vec![master(server, 0)], script(&[]));
    (0..machines).for_each(|_| {
        model.add(1.0, wants);
    });
    // A server without a table learns first, and there is nothing to learn.
    calm(&mut model, 40);
    model
}

fn leases(model: &Model) -> Vec<f64> {
    (0..model.machines.len())
        .map(|place| model.machines[place].node.has(model.local(place)) as f64)
        .collect()
}

/// Jain's index.
fn fairness(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|one| one * one).sum::<f64>())
}

#[test]
fn equal_machines_get_equal_parts() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let server = Server::start(&[]);
    let mut model = small(&server, 30, u64::MAX);
    let (parts, pool) = (leases(&model), model.settings.pool() as f64);
    let (fair, all) = (fairness(&parts), parts.iter().sum::<f64>());
    assert!(fair >= 0.98 && all >= 0.98 * pool, "fairness {fair}, {all} of {pool}");

    // Twenty need little: the rest is for the ten others, in equal parts.
    (0..20).for_each(|place| model.machines[place].wants = 500_000);
    calm(&mut model, 30);
    let parts = leases(&model);
    assert!(parts[..20].iter().all(|part| *part == 500_000.0), "{parts:?}");
    let (fair, all) = (fairness(&parts[20..]), parts.iter().sum::<f64>());
    assert!(fair >= 0.98 && all >= 0.98 * pool, "fairness {fair}, {all} of {pool}: {parts:?}");

    // One has three times the weight of another.
    model.machines[29].node.set_weight(300);
    calm(&mut model, 30);
    let parts = leases(&model);
    let ratio = parts[29] / parts[28];
    assert!((2.8..=3.2).contains(&ratio), "{ratio}");
}

#[test]
fn a_lone_machine_has_all_within_two_renewals() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let server = Server::start(&[]);
    let mut model = small(&server, 3, u64::MAX);
    let pool = model.settings.pool();
    for place in [0, 1] {
        model.leave(place, Way::Answered);
    }
    calm(&mut model, 10);
    assert!(
        model.granted() >= pool * 9 / 10,
        "two of three said that they leave: {}",
        model.granted()
    );
    model.leave(2, Way::Lost);
    model.start(0);
    calm(&mut model, 33);
    assert!(model.granted() >= pool * 9 / 10, "the last one died: {}", model.granted());
}

#[test]
fn a_restart_shorter_than_a_lease_is_not_felt() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let mut server = Server::start(&[]);
    let mut model = small(&server, 10, u64::MAX);
    let before = leases(&model);
    server.kill();
    model.masters[0].connection = None;
    calm(&mut model, 20);
    assert_eq!(leases(&model), before, "while it is away");
    server.restart();
    model.masters[0] = master(&server, 1);
    model.set(0);
    calm(&mut model, 10);
    assert_eq!(leases(&model), before, "while it learns");
    calm(&mut model, 40);
    assert!(
        fairness(&leases(&model)) > 0.98 && model.granted() >= model.settings.pool() * 98 / 100
    );
}

#[test]
fn no_more_nodes_than_were_set() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let server = Server::start(&[]);
    let settings = settings(1_000_000, 10_000, 50, 6_000);
    let mut model = Model::new(settings, vec![master(&server, 0)], script(&[]));
    // Nine of ten die without a word, and as many others come.
    for _ in 0..500 {
        let place = model.add(1.0, 1 << 30);
        model.call(place, Way::Answered, 0);
    }
    assert_eq!(model.machines.iter().filter(|one| one.refused > 0).count(), 450);
    let Some(Reply::Granted(granted)) = model.call(0, Way::Answered, 0) else { panic!() };
    assert_eq!(granted.nodes, 50);
    (0..50).for_each(|place| model.machines[place].lives = false);
    model.now = model.now.plus(Nanos(10 * SECOND));
    // The server's clock follows its calls.
    for _ in 0..10 {
        model.call(60, Way::Answered, 0);
        model.now = model.now.plus(Nanos(SECOND));
    }
    assert!(matches!(model.call(61, Way::Answered, 0), Some(Reply::Granted(_))), "there is room");
}
