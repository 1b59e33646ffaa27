//! The policy of a class: chosen by the user, shown, kept, and told by how calls wait.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::cold;
use discnice_tests::process::run;
use discnice_tests::product;
use serde_json::Value;
use tempfile::TempDir;

/// Reads a cold file of `size` bytes in a class with these options; returns how long calls of the class waited.
fn waited(class: &Class, options: &[&str], size: usize) -> f64 {
    // What is loaded, and the library's copy, may be on the disk only.
    run(&mut Class::new("unlimited").command(["cat", "/dev/null"])).succeeded();
    let folder = product::folder();
    let file = folder.path().join("cold");
    run(product::discnice(["class", "set", class.name()]).args(options)).succeeded();
    cold::make(&file, size).expect("a file");
    let mut read = product::discnice(["run", "--class", class.name(), "--", "cat"]);
    run(read.arg(&file)).succeeded();
    class.show()["waited_seconds"].as_f64().expect("seconds")
}

//= discnice/4.1-own-policy
//= discnice/5.3-function
#[test]
fn sleep_lets_a_second_s_worth_pass_where_the_window_makes_it_wait() {
    let (window, sleep) = (Class::new("8M"), Class::new("8M"));
    let smooth = waited(&window, &["--disk-read", "8M"], 6 << 20);
    let bursts = waited(&sleep, &["--disk-read", "8M", "--policy", "sleep"], 6 << 20);
    assert!(smooth > 0.4, "6 MiB at 8 MiB/s waited {smooth} s");
    assert!(bursts < smooth / 2.0, "{bursts} s, and with the rate window {smooth} s");
}

//= discnice/5.3-n
#[test]
fn sleep_holds_the_threshold_over_seconds() {
    let class = Class::new("8M");
    let waits = waited(&class, &["--disk-read", "8M", "--policy", "sleep"], 24 << 20);
    assert!(waits > 1.5, "24 MiB at 8 MiB/s waited {waits} s");
}

//= rate-windows/3.2-tuning
#[test]
fn the_longest_sleep_cuts_large_reads() {
    let waits = |longest: &str| {
        let class = Class::new("8M");
        waited(&class, &["--disk-read", "8M", "--longest-sleep", longest], 8 << 20);
        class.show()["waits"].as_u64().expect("a number")
    };
    let (few, many) = (waits("250ms"), waits("10ms"));
    assert!(many > 3 * few, "{many} waits of 10 ms, {few} of 250 ms");
}

//= rate-windows/3.2-tuning
#[test]
fn the_configuration_says_from_what_traffic_on_others_are_busy() {
    let class = Class::new("unlimited");
    let folder = product::private_folder();
    let own = folder.path().join("discnice");
    fs::create_dir(&own).expect("a folder");
    let explained = |text: &str| {
        fs::write(own.join("config.toml"), text).expect("a file");
        let mut set = configured(&folder, &["run", "--class", class.name(), "--", "true"]);
        let set = run(set.env("XDG_CACHE_HOME", "/nonexistent"));
        let mut explain = configured(&folder, &["explain", class.name()]);
        (set, run(&mut explain).text())
    };
    let (_, usual) = explained("");
    let of = "others: busy above 1.9 MiB/s on a disk, until below 977 KiB/s";
    assert!(usual.contains(of), "a fiftieth of a hard disk's rate: {usual}");
    run(&mut configured(&folder, &["class", "rm", class.name()])).succeeded();
    let (_, given) = explained("[busy]\nhigh = \"3M\"\n");
    let of = "others: busy above 3 MiB/s on a disk, until below 1.5 MiB/s";
    assert!(given.contains(of), "{given}");
    let (refused, _) = explained("[busy]\nhigh = \"3M\"\nlow = \"4M\"\n");
    assert_eq!(refused.status, Some(125));
    assert!(refused.complaint().contains(":1:1: busy: low 4 MiB/s is above high 3 MiB/s"));
}

/// A class with a policy of its own: a shell script, in a configuration of its own.
fn with_program(class: &Class, script: &str) -> TempDir {
    let folder = product::private_folder();
    let own = folder.path().join("discnice");
    fs::create_dir(&own).expect("a folder");
    let text = format!("[class.{}]\npolicy = ['/bin/sh', '-c', '''{script}''']\n", class.name());
    fs::write(own.join("config.toml"), text).expect("a file");
    folder
}

/// A command that asks this configuration, and a daemon of its own, which has read no other.
fn configured(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = product::discnice(words);
    command.env("XDG_CONFIG_HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    command
}

/// What is shown of the class once `is_so`, or after ten seconds.
fn shown_when(folder: &TempDir, class: &Class, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        // It may not have been made yet.
        let shown = run(&mut configured(folder, &["class", "show", class.name(), "--json"]));
        let all: Value = serde_json::from_slice(&shown.output).unwrap_or_default();
        if is_so(&all[0]) || Instant::now() > deadline {
            return all[0].clone();
        }
        sleep(Duration::from_millis(20));
    }
}

//= discnice/4.1-own-policy
//= discnice/5.3-function
#[test]
fn a_program_of_the_user_s_own_sets_the_rates_below_the_limits() {
    let class = Class::new("64M");
    let script = r#"while read -r question; do echo "{\"rates\": {\"total\": 4194304}}"; done"#;
    let folder = with_program(&class, script);
    let name = class.name();
    let mut held = configured(&folder, &["run", "--class", name, "--disk", "64M", "sleep", "30"])
        .spawn()
        .expect("a process");
    let shown = shown_when(&folder, &class, |shown| shown["policy_program"] == "answers");
    assert_eq!(shown["policy_program"], "answers", "{shown}");
    assert_eq!((&shown["policy"], &shown["limit_total"]), (&"program".into(), &67_108_864.into()));
    let file = folder.path().join("cold");
    cold::make(&file, 6 << 20).expect("a file");
    let read = configured(&folder, &["run", "--class", name, "cat"]).arg(&file).output();
    assert!(read.expect("a process").status.success());
    let shown = shown_when(&folder, &class, |_| true);
    let waited = shown["waited_seconds"].as_f64().expect("seconds");
    assert!(waited > 0.8, "6 MiB at the program's 4 MiB/s waited {waited} s");
    held.kill().expect("a process");
    held.wait().expect("a process");
    run(&mut configured(&folder, &["class", "rm", "--force", name])).succeeded();
}

#[test]
fn a_program_that_ends_leaves_the_limits_in_force_and_is_told_of() {
    let class = Class::new("64M");
    let folder = with_program(&class, "exit 1");
    let name = class.name();
    let mut held = configured(&folder, &["run", "--class", name, "--disk", "64M", "sleep", "30"])
        .spawn()
        .expect("a process");
    let shown = shown_when(&folder, &class, |shown| shown["policy_program"] == "ended");
    assert_eq!(shown["policy_program"], "ended", "{shown}");
    let explained = run(&mut configured(&folder, &["explain", name])).succeeded().text();
    assert!(explained.contains("cannot be started, or has ended"), "{explained}");
    held.kill().expect("a process");
    held.wait().expect("a process");
    run(&mut configured(&folder, &["class", "rm", "--force", name])).succeeded();
}

#[test]
fn a_program_that_no_configuration_names_is_refused() {
    let class = Class::new("8M");
    let set = ["class", "set", class.name(), "--policy", "program"];
    let refused = run(&mut product::discnice(set));
    assert_eq!(refused.status, Some(125), "{refused:?}");
    assert!(refused.complaint().contains("config.toml names no program"), "{refused:?}");
    let refused =
        run(&mut product::discnice(["run", "--policy", "program", "--disk", "8M", "true"]));
    assert_eq!(refused.status, Some(125), "{refused:?}");
    assert!(refused.complaint().contains("--class NAME"), "{refused:?}");
}

//= discnice/4.1-own-policy
#[test]
fn a_policy_and_its_window_are_kept_and_shown() {
    let class = Class::new("8M");
    let set = |options: &[&str]| {
        run(product::discnice(["class", "set", class.name()]).args(options)).succeeded();
        let shown = class.show();
        (shown["policy"].clone(), shown["window_seconds"].as_f64().expect("seconds"))
    };
    assert_eq!(set(&["--disk", "8M"]), ("window".into(), 5.0));
    assert_eq!(set(&["--window", "2s"]), ("window".into(), 2.0));
    assert_eq!(set(&["--disk", "9M"]), ("window".into(), 2.0), "kept");
    assert_eq!(set(&["--policy", "sleep"]), ("sleep".into(), 1.0), "its own");
    assert_eq!(set(&["--policy", "sleep", "--window", "300ms"]), ("sleep".into(), 0.3));
    let explained = run(&mut product::discnice(["explain", class.name()])).succeeded().text();
    assert!(explained.contains("policy: sleep, over 300.0 ms"), "{explained}");
    for (options, why) in [
        (["--window", "5s"], "100 to 4900 ms"),
        (["--window", "1ms"], "100 to 4900 ms"),
        (["--policy", "fast"], "give window, sleep or program"),
    ] {
        let refused = run(product::discnice(["class", "set", class.name()]).args(options));
        assert_eq!(refused.status, Some(125), "{refused:?}");
        assert!(refused.complaint().contains(why), "{refused:?}");
    }
    assert_eq!(class.show()["window_seconds"], 0.3, "a refused change leaves it");
}
