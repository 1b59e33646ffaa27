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
