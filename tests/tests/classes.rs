//! Classes: every threshold can be set, is shown again, and stays until it is changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::process::run;
use discnice_tests::product;
use discnice_tests::segment::Segment;

/// Each option, the field that shows it, and what is set.
const THRESHOLDS: [(&str, &str, u64); 8] = [
    ("--disk", "limit_total", 8_000_000),
    ("--disk-read", "limit_read", 5_000_000),
    ("--disk-write", "limit_write", 4_000_000),
    ("--disk-iops", "limit_operations", 300),
    ("--meta-ops", "limit_metadata", 1000),
    ("--net", "limit_net", 3_000_000),
    ("--net-up", "limit_net_up", 2_000_000),
    ("--net-down", "limit_net_down", 1_000_000),
];

//= discnice/5.3-threshold
//= rate-windows/3.1-classes
#[test]
fn every_threshold_is_kept_and_shown() {
    let class = Class::new("unlimited");
    let mut set = product::discnice(["class", "set", class.name(), "--net-loopback"]);
    for (option, _, value) in THRESHOLDS {
        set.args([option, &value.to_string()]);
    }
    run(&mut set).succeeded();
    let shown = class.show();
    for (option, field, value) in THRESHOLDS {
        assert_eq!(shown[field], value, "{option}");
    }
    assert_eq!(shown["net_loopback"], true);
    for (option, field, _) in THRESHOLDS {
        run(&mut product::discnice(["class", "set", class.name(), option, "unlimited"]))
            .succeeded();
        assert!(class.show()[field].is_null(), "{option}");
    }
    run(&mut product::discnice(["class", "set", class.name(), "--net-loopback=no"])).succeeded();
    assert_eq!(class.show()["net_loopback"], false);
}

#[test]
fn a_refused_change_leaves_the_class_as_it_was() {
    let class = Class::new("unlimited");
    run(&mut product::discnice(["class", "set", class.name(), "--net", "5M"])).succeeded();
    let before = class.show();
    let refused = run(&mut product::discnice(["class", "set", class.name(), "--net-up", "6M"]));
    assert_eq!(refused.status, Some(125), "{refused:?}");
    assert_eq!(before["limit_net"], class.show()["limit_net"]);
    assert!(class.show()["limit_net_up"].is_null());
}

/// The number of a job holds always, also in a class that one without a number has made.
#[test]
fn a_number_replaces_what_a_job_without_one_gets() {
    let class = Class::new("unlimited");
    let run_with = |options: &[&str]| {
        let mut command = product::discnice(["run", "--class", class.name()]);
        run(command.args(options).args(["--", "true"])).succeeded();
        class.show()
    };
    run_with(&[]);
    assert_eq!(run_with(&["--weight", "7"])["when"], "busy");
    run_with(&["--weight", "100"]);
    let shown = run_with(&["--disk", "3M"]);
    assert_eq!((&shown["when"], &shown["guest"]), (&"always".into(), &false.into()), "{shown:#}");
    run_with(&["--when", "busy"]);
    assert_eq!(run_with(&["--disk", "4M"])["when"], "busy", "it was said");
}

/// Writes a configuration file, and returns the folder that `XDG_CONFIG_HOME` has to name.
fn configured(text: &str) -> tempfile::TempDir {
    let folder = product::folder();
    let own = folder.path().join("discnice");
    std::fs::create_dir(&own).expect("a folder");
    std::fs::write(own.join("config.toml"), text).expect("a file");
    folder
}

//= rate-windows/3.2-any-classes
#[test]
fn a_class_begins_with_its_configured_defaults() {
    let class = Class::new("unlimited");
    let text = format!("[class.\"{}\"]\ndisk-read = \"5MB\"\nweight = 7\n", class.name());
    let folder = configured(&text);
    let mut start =
        product::discnice(["run", "--class", class.name(), "--meta-ops", "500", "--", "true"]);
    run(start.env("XDG_CONFIG_HOME", folder.path())).succeeded();
    let shown = class.show();
    assert_eq!((&shown["limit_read"], &shown["weight"]), (&5_000_000.into(), &7.into()));
    assert_eq!(shown["limit_metadata"], 500, "what is given counts on top");
    assert_eq!(shown["when"], "always");
}

#[test]
fn a_wrong_configuration_starts_nothing() {
    let class = Class::new("unlimited");
    let folder = configured("[default]\ndisk = \"5Q\"\n");
    for words in [&["run", "--", "touch"][..], &["run", "--class", class.name(), "--", "touch"]] {
        let mut start = product::discnice(words);
        start.arg(folder.path().join("started")).env("XDG_CONFIG_HOME", folder.path());
        let refused = run(&mut start);
        assert_eq!(refused.status, Some(125), "{refused:?}");
        assert!(refused.complaint().contains("config.toml:2:8: "), "{refused:?}");
        assert!(!folder.path().join("started").exists());
    }
}

#[test]
fn a_class_without_its_memory_is_shown_while_members_are_held() {
    let class = Class::new("1M");
    let mut sleeper = class.command(["sleep", "30"]);
    let mut sleeper = sleeper.spawn().expect("discnice");
    let listed = || run(&mut product::discnice(["status"])).text();
    let deadline = Instant::now() + Duration::from_secs(10);
    let maps = format!("/proc/{}/maps", sleeper.id());
    // Of the command itself, not of what executes it.
    let both = |maps: &str| maps.contains("/SYSV") && maps.contains("libdiscnice.so");
    let is_member = || fs::read_to_string(&maps).is_ok_and(|maps| both(&maps));
    while !is_member() {
        assert!(Instant::now() < deadline, "{}", listed());
        std::thread::sleep(Duration::from_millis(20));
    }
    Segment::of(class.name()).expect("its segment").remove();
    let shown = listed();
    assert!(shown.contains(&format!("{} (removed)", class.name())), "{shown}");
    // What is made under its name now is another one.
    run(&mut class.command(["true"])).succeeded();
    assert_eq!(listed().matches(class.name()).count(), 2, "{}", listed());
    sleeper.kill().expect("a child");
    sleeper.wait().expect("a child");
}

/// A program of another version of the product, with shared memory that this one cannot use, left a
/// class.
#[test]
fn limits_outlive_the_layout_of_shared_memory() {
    let class = Class::new("3M");
    run(&mut product::discnice(["class", "set", class.name(), "--disk", "3M"])).succeeded();
    let segment = Segment::of(class.name()).expect("its segment");
    // The version is the low half of the third word.
    segment.set(2, 9_999);
    let folder = product::folder();
    let file = folder.path().join("written");
    let copy = format!("dd if=/dev/zero of={} bs=64k count=96 2>&1", file.display());
    let started = Instant::now();
    let words = ["run", "--class", class.name(), "--", "sh", "-c", &copy];
    let outcome = run(&mut product::discnice(words)).succeeded();
    let rate = f64::from(6 << 20) / started.elapsed().as_secs_f64();
    assert!(outcome.complaint().is_empty() && rate < 3.8e6, "{rate} B/s, {outcome:?}");
    assert_eq!(class.show()["limit_total"], 3 << 20);
    let status = run(&mut product::discnice(["status"])).text();
    assert!(status.contains("of another version"), "{status}");
    segment.remove();
}

/// Whatever is in the place of the configuration is told in one line, and nothing waits for it.
#[test]
fn what_is_no_configuration_starts_nothing() {
    let folder = configured("[default]\ndisk = \"5M\"\n");
    let path = folder.path().join("discnice/config.toml");
    let refuse = |what: &str, why: &str| {
        let mut start = product::discnice(["run", "--", "touch"]);
        start.arg(folder.path().join("started")).env("XDG_CONFIG_HOME", folder.path());
        let refused = run(&mut start);
        assert_eq!(refused.status, Some(125), "{what}: {refused:?}");
        assert_eq!(refused.complaint().lines().count(), 1, "{what}: {refused:?}");
        assert!(refused.complaint().contains(why), "{what}: {refused:?}");
        assert!(!folder.path().join("started").exists(), "{what}");
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("ours");
    refuse("open to all", "all users may write it");
    fs::File::create(&path).expect("ours").set_len(4 << 30).expect("room for nothing");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
    refuse("4 GiB", "longer than");
    fs::remove_file(&path).expect("ours");
    fs::create_dir(&path).expect("room");
    refuse("a directory", "no plain file");
    fs::remove_dir(&path).expect("empty");
    run(std::process::Command::new("mkfifo").arg(&path)).succeeded();
    refuse("a FIFO", "no plain file");
}

#[test]
fn a_class_that_was_made_for_one_job_is_changed_by_its_name() {
    let mut job = product::discnice(["run", "--disk", "5M", "sleep", "60"]);
    let mut job = job.spawn().expect("it starts");
    let name = format!("@sleep-{}", job.id());
    let show = || run(&mut product::discnice(["class", "show", &name, "--json"]));
    let deadline = Instant::now() + Duration::from_secs(10);
    while show().status != Some(0) {
        assert!(Instant::now() < deadline, "{:?}", show());
    }
    run(&mut product::discnice(["class", "set", &name, "--disk", "7M"])).succeeded();
    let shown: serde_json::Value = serde_json::from_slice(&show().output).expect("JSON");
    assert_eq!(shown[0]["limit_total"], 7 << 20);
    job.kill().expect("our child");
    let _ = job.wait();
    let none = run(&mut product::discnice(["class", "set", "@sleep-0", "--disk", "7M"]));
    assert!(none.status == Some(125) && none.complaint().contains("no class @sleep-0"), "{none:?}");
}

#[test]
fn a_preset_is_laid_below_the_options_and_over_a_class() {
    let folder = configured("[preset.mine]\nmeta-ops = 77\n");
    let class = Class::new("unlimited");
    let run_by = |preset: &str, options: &[&str]| {
        let mut command = product::discnice(["run", "--preset", preset, "--class", class.name()]);
        command.args(options).arg("true").env("XDG_CONFIG_HOME", folder.path());
        run(&mut command).succeeded();
        class.show()
    };
    let agent = run_by("agent", &["--disk-total", "1G"]);
    assert_eq!(
        (&agent["when"], &agent["limit_metadata"]),
        (&"busy".into(), &5000.into()),
        "{agent}"
    );
    assert_eq!(agent["disk_total"], 1u64 << 30, "an option has precedence: {agent}");
    let mine = run_by("mine", &[]);
    assert_eq!(
        (&mine["limit_metadata"], &mine["disk_total"]),
        (&77.into(), &(1u64 << 30).into()),
        "{mine}"
    );
}

/// Its rules and limits hold for others, so to go on without them would be to lift them in silence.
#[test]
fn a_configuration_that_cannot_be_read_is_told() {
    let folder = configured("[default]\ndisk = \"5M\"\n");
    let own = folder.path().join("discnice");
    let mode = fs::Permissions::from_mode;
    fs::set_permissions(folder.path(), mode(0o755)).expect("ours");
    fs::set_permissions(own.join("config.toml"), mode(0o000)).expect("ours");
    let started = || {
        let mut start = product::as_user(product::program());
        run(start.args(["run", "true"]).env("XDG_CONFIG_HOME", folder.path()))
    };
    if product::is_root() {
        // The folder is another user's, and so is what it says.
        assert_eq!(started().status, Some(0));
        chown(&own, product::NOBODY.parse().ok(), None).expect("the superuser may");
    }
    let refused = started();
    assert_eq!(refused.status, Some(125), "{refused:?}");
    let complaint = refused.complaint();
    assert!(complaint.contains("config.toml: Permission denied"), "{complaint}");
}
