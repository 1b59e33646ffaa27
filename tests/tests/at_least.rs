//! `--at-least`: what a class that gives way still gets, by each mechanism, and that it says so.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, until};
use discnice_tests::product;
use discnice_tests::readers::Readers;

const MIB: u64 = 1 << 20;
/// The least rate, in MiB/s: enough to be told from what passes without it.
const LEAST: u64 = 12;
/// Over which rates are taken.
const LONG: Duration = Duration::from_millis(500);

fn set(class: &Class, limits: &[&str]) {
    run(&mut product::discnice([&["class", "set", class.name()], limits].concat())).succeeded();
}

/// MiB a second that the class is charged.
fn rate(class: &Class) -> f64 {
    let (before, begun) = (class.charged().0, Instant::now());
    sleep(LONG);
    (class.charged().0 - before) as f64 / MIB as f64 / begun.elapsed().as_secs_f64()
}

//= rate-windows/3.1-keeps-threshold
#[test]
fn a_class_that_gives_way_keeps_its_least_rate_whatever_holds_it() {
    let Readers { ours, theirs, dynamic, fixed, .. } = &match Readers::new() {
        Ok(readers) => readers,
        Err(why) => skip!("{why}"),
    };
    let child = format!("{fixed} {ours}; :");
    for (what, words) in [
        ("by the library", vec![dynamic.as_str(), ours]),
        ("below a filter", vec![fixed.as_str(), ours]),
        ("from outside", vec!["sh", "-c", &child]),
    ] {
        let class = Class::new("unlimited");
        set(&class, &["--disk", "64M", "--when", "busy"]);
        let run = ["run", "--class", class.name(), "--"];
        let _job = Group::start_silent(&mut product::discnice([&run[..], &words].concat()));
        // Reads all the time, without a pause in which the job may come back.
        let _others = Group::start_silent(Command::new(dynamic).arg(theirs));
        until("others are busy", || class.show()["throttled"] == true);
        // What was on its way when the others came, and what they leave for a moment, does not count.
        until(&format!("{what}: held below it"), || rate(&class) < LEAST as f64 / 2.0);
        set(&class, &["--at-least", &format!("{LEAST}M")]);
        until(&format!("{what}: it says why"), || class.show()["waits_for"] == "at_least");
        let range = 0.6 * LEAST as f64..1.6 * LEAST as f64;
        until(&format!("{what}: it has its least rate"), || range.contains(&rate(&class)));
        set(&class, &["--at-least", "none"]);
        assert!(class.show()["at_least"].is_null());
    }
}

#[test]
fn it_is_told_and_refused_above_a_limit() {
    let class = Class::new("20M");
    run(&mut class.command(["true"])).succeeded();
    set(&class, &["--at-least", "2M"]);
    assert_eq!(class.show()["at_least"], 2 * MIB);
    let explained = run(&mut product::discnice(["explain", class.name()])).succeeded().text();
    assert!(explained.contains("at least 2 MiB/s while it gives way"), "{explained}");
    let shown = run(&mut product::discnice(["class", "list"])).succeeded().text();
    assert!(shown.contains("at least 2 MiB/s"), "{shown}");
    for (words, why) in [
        (&["class", "set", class.name(), "--at-least", "21M"][..], "lower it or raise --disk"),
        (&["class", "set", class.name(), "--disk", "1M"], "lower it or raise --disk"),
        (&["run", "--at-least", "unlimited", "true"], "give a rate, or none"),
        (&["run", "--at-least", "1M", "--polite", "true"], "leave out one of them"),
    ] {
        let refused = run(&mut product::discnice(words));
        let complaint = refused.complaint();
        assert_eq!((refused.status, complaint.lines().count()), (Some(125), 1), "{complaint}");
        assert!(complaint.contains(why), "{complaint}");
    }
    // A job without numbers has room for it: its default would be a tenth of a hard disk's rate.
    let mut dry = product::discnice(["run", "--at-least", "50M", "--dry-run", "--", "true"]);
    let text = run(dry.env("XDG_CACHE_HOME", "/nonexistent")).succeeded().text();
    assert!(text.contains("disk: 50 MiB/s while others are busy"), "{text}");
}
