//! Machines share a budget of a real server fairly, and keep within it while the server or policyd is stopped or killed. Each
//! class here is a machine: only the address is common.

use std::time::Duration;

use discnice_tests::fleet::{CAP, FLOOR, Killed, LEASE, Scene};
use discnice_tests::process::{run, send};
use discnice_tests::skip;
use serde_json::Value;

/// Jain's index.
fn fairness(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|one| one * one).sum::<f64>())
}

/// Each gets a third of the budget again.
fn until_equal(scene: &Scene, what: &str) {
    scene.until_each_has(what, CAP / 3 * 95 / 100, CAP / 3);
}

/// All three write no more than the floor.
fn assert_slow(scene: &Scene) {
    let slow: f64 = scene.rates(3).iter().sum();
    assert!(slow <= 3.0 * FLOOR as f64 * 1.5, "{slow}");
}

/// Longer than machines keep what they have without asking.
fn outlast_the_lease() {
    std::thread::sleep(Duration::from_millis(LEASE * 1000 + 500));
}

#[test]
fn machines_share_a_budget_through_failures() {
    let Some(mut scene) = Scene::new("fleet") else { skip!("no redis-server") };
    let writers: Vec<Killed> = scene.classes.iter().map(|class| scene.writer(class)).collect();
    until_equal(&scene, "equal parts");
    let rates = scene.rates(5);
    let sum: f64 = rates.iter().sum();
    assert!(sum <= CAP as f64 * 1.02, "{rates:?}");
    assert!(sum >= CAP as f64 * 0.85 && fairness(&rates) >= 0.98, "{rates:?}");

    lose_the_server(&mut scene);
    lose_what_holds_the_leases(&scene);
    lose_policyd(&mut scene);
    lose_it_to_another_environment(&mut scene);
    lose_two_machines(&scene, writers);
}

/// kill -9 of the server: nothing for a lease, then the floor. It comes back with nothing.
fn lose_the_server(scene: &mut Scene) {
    scene.server = None;
    scene.until_each_has("the floor, by policyd", FLOOR, FLOOR);
    let status = scene.status(&[]);
    assert_eq!(status.status, Some(125), "{status:?}");
    assert!(status.text().contains("cannot reach its server"), "{status:?}");
    assert_slow(scene);
    scene.start_server();
    until_equal(scene, "equal parts again");
}

/// The process that holds the leases is stopped: the members themselves fall to the floor. It is killed: the next one goes
/// on with the leases.
fn lose_what_holds_the_leases(scene: &Scene) {
    let worker = scene.worker().expect("a process that watches");
    send(worker, 19);
    outlast_the_lease();
    assert_slow(scene);
    send(worker, 18);
    until_equal(scene, "equal parts after a stop");
    send(worker, 9);
    scene.until("another process watches", || scene.worker().is_some_and(|next| next != worker));
    until_equal(scene, "equal parts after a kill");
}

/// All of policyd is killed, and another one begins with what it left.
fn lose_policyd(scene: &mut Scene) {
    scene.policyd = None;
    scene.start_policyd();
    outlast_the_lease();
    until_equal(scene, "equal parts with another policyd");
}

/// A policyd that knows of no server, by its own configuration, takes over, and gives way to one that knows it.
fn lose_it_to_another_environment(scene: &mut Scene) {
    let stranger = scene.stranger();
    scene.policyd = None;
    scene.until_each_has("the floor, by another environment", FLOOR, FLOOR);
    let status = scene.status(&[]);
    assert!(status.text().contains("a wrong address"), "{status:?}");
    scene.start_policyd();
    for class in &scene.classes {
        run(&mut scene.command(["run", "--class", class, "--", "true"])).succeeded();
    }
    until_equal(scene, "equal parts beside another environment");
    drop(stranger);
}

/// Two end, and one gets what they had.
fn lose_two_machines(scene: &Scene, mut writers: Vec<Killed>) {
    writers.truncate(1);
    let all = CAP - 2 * FLOOR;
    scene.until("all for one", || scene.allowed(&scene.classes[0]) >= all * 9 / 10);
    scene.until("the others have left", || {
        let status = scene.status(&["--json", &scene.classes[0]]).succeeded();
        let told: Value = serde_json::from_slice(&status.output).unwrap();
        let nodes = told[0]["nodes"].as_array().unwrap();
        nodes.len() == 1 && nodes[0]["cut_off"].as_bool() == Some(false)
    });
}
