//! Classes: every threshold can be set, is shown again, and stays until it is changed.

use discnice_tests::process::run;
use discnice_tests::{class::Class, product};

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

/// Writes a configuration file, and returns the folder that `XDG_CONFIG_HOME` has to name.
fn configured(text: &str) -> tempfile::TempDir {
    let folder = product::folder();
    let own = folder.path().join("discnice");
    std::fs::create_dir(&own).expect("a folder");
    std::fs::write(own.join("config.toml"), text).expect("a file");
    folder
}

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
