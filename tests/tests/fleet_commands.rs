//! `discnice fleet` and `run` with a budget that machines share say in one line what is wrong, and `fleet up` leaves nothing.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use discnice_tests::fleet::{CAP, Killed, Scene};
use discnice_tests::process::{Outcome, run, send};
use discnice_tests::skip;
use serde_json::Value;

/// One line on standard error or output, and status 125.
fn refused(outcome: &Outcome, names: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert_eq!(complaint.lines().count(), 1, "{outcome:?}");
    assert!(complaint.starts_with("discnice: ") && complaint.contains(names), "{complaint}");
}

#[test]
fn wrong_settings_are_refused_in_one_line() {
    let Some(scene) = Scene::new("settings") else { skip!("no redis-server") };
    let address = scene.address();
    let set = |words: &[&str]| run(scene.command(["fleet", "set"]).args(words));
    for (words, names) in [
        (&["backup", "--cap", "1M"][..], "no class backup"),
        (&["http://h/a", "--cap", "1M"], "redis://"),
        (&["redis://127.0.0.1:1/a", "--cap", "1M"], "no answer"),
        (&[&address, "--cap", "0"], "--cap"),
        (&[&address, "--cap", "100B"], "cap must be"),
        (&[&address, "--cap", "1M", "--floor", "100K", "--nodes", "50"], "leave nothing"),
        (&[&address, "--floor", "1B"], "below"),
        (&[&address, "--nodes", "0"], "number of nodes"),
        (&[&address, "--lease", "1ms"], "from 1 second"),
        (&[&format!("{address}-other")], "needs a cap"),
    ] {
        refused(&set(words), names);
    }
    let told = scene.status(&[&address, "--json"]).succeeded();
    let told: Value = serde_json::from_slice(&told.output).unwrap();
    assert_eq!(told[0]["cap"].as_u64(), Some(CAP), "nothing was changed");
    assert_eq!(told[0]["nodes_max"].as_u64(), Some(3));

    // What is not given stays.
    set(&[&address, "--cap", "9M"]).succeeded();
    let told = scene.status(&[&address]).succeeded().text();
    assert!(
        told.contains("of 9 MiB/s")
            && told.contains("of 3 machines")
            && told.contains("floor 200 KiB/s"),
        "{told}"
    );
}

#[test]
fn a_job_starts_without_its_server_and_says_so() {
    let Some(mut scene) = Scene::new("alone") else { skip!("no redis-server") };
    scene.server = None;
    let class = scene.classes[0].clone();
    let ran = run(&mut scene.command(["run", "--class", &class, "--", "echo", "ran"])).succeeded();
    assert_eq!(ran.text(), "ran\n");
    let complaint = ran.complaint();
    let line = complaint.lines().find(|line| line.contains("cannot reach its server"));
    assert!(line.is_some_and(|line| line.contains("4 KiB/s")), "{complaint}");
    assert_eq!(scene.allowed(&class), 4096);

    // Without a fleet the budget is this machine's alone.
    let path: PathBuf = scene.folder.path().join("config/discnice/config.toml");
    fs::write(&path, format!("[class.{class}]\ndisk = \"5M\"\n")).unwrap();
    assert!(scene.status(&[]).succeeded().text().contains("this machine's alone"));
    run(&mut scene.command(["run", "--class", &class, "--", "true"])).succeeded();
    assert_eq!(scene.show(&class)["fleet"], Value::Null);
}

#[test]
fn up_starts_a_server_that_ends_with_it() {
    let Some(scene) = Scene::new("up") else { skip!("no redis-server") };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let output = scene.folder.path().join("up");
    let mut up = scene.command(["fleet", "up", "--cap", "20M", "--port", &port]);
    up.stdin(Stdio::null()).stdout(fs::File::create(&output).unwrap());
    let mut up = Killed(up.spawn().unwrap());
    let told = || fs::read_to_string(&output).unwrap();
    scene.until("it tells how to change it", || told().contains("To change it"));
    let text = told();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("fleet = "))
        .expect("a line for config.toml");
    let address = line.trim_matches('"');
    let status = scene.status(&[address]).succeeded().text();
    assert!(status.contains("of 20 MiB/s"), "{status}");
    let refused = run(&mut scene.command(["fleet", "set", address, "--cap", "1G"]));
    assert!(refused.complaint().contains("may not do that"), "{refused:?}");
    let admin = text.lines().find_map(|line| line.split("fleet set ").nth(1)?.split(' ').next());
    run(&mut scene.command(["fleet", "set", admin.unwrap(), "--cap", "1G"])).succeeded();

    let password = address.split("password-file=").nth(1).unwrap().to_owned();
    send(up.0.id() as i32, 15);
    assert!(up.0.wait().unwrap().success());
    assert!(!Path::new(&password).exists(), "nothing is left");
    assert_eq!(scene.status(&[address]).status, Some(125));
}
