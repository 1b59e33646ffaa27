use std::collections::BTreeSet;

use super::*;
use discnice_units::Bytes;

/// A class of which there is something to tell in every metric.
fn sample() -> ClassMetrics {
    let mut counts = [0; BUCKETS];
    (counts[0], counts[9], counts[BUCKETS - 1]) = (1, 2, 4);
    ClassMetrics {
        name: "a \"b\"\n".into(),
        limits: Limits::UNLIMITED
            .with(Resource::Total, Rate::per_second(1000))
            .with_disk_total(Some(Bytes::new(64))),
        totals: [9, 4, 5, 2, 7, 0, 0, 0],
        waited: 1.5,
        counts,
        used: 9,
        fleet: Some(Fleet { allowed: 100, cap: Some(300), lease: 2.5 }),
        held: ProcessCounts { limited: 3, escaped: 1, escaped_bytes: 4096 },
    }
}

#[test]
fn a_class_is_told_whole() {
    let shown = text(vec![sample()]);
    let class = "class=\"a \\\"b\\\"\\n\"";
    for line in [
        format!("discnice_class_bytes_total{{{class},resource=\"read\"}} 4"),
        format!("discnice_class_bytes_total{{{class},resource=\"write\"}} 5"),
        format!("discnice_class_operations_total{{{class},resource=\"metadata\"}} 7"),
        format!("discnice_class_limit{{{class},resource=\"total\"}} 1000.0"),
        format!("discnice_class_disk_total_bytes{{{class}}} 64"),
        format!("discnice_class_disk_total_used_bytes{{{class}}} 9"),
        format!("discnice_class_wait_seconds_sum{{{class}}} 1.5"),
        format!("discnice_class_wait_seconds_count{{{class}}} 7"),
        format!("discnice_class_wait_seconds_bucket{{le=\"0.001048576\",{class}}} 3"),
        format!("discnice_class_wait_seconds_bucket{{le=\"+Inf\",{class}}} 7"),
        format!("discnice_class_processes{{{class},limited=\"yes\"}} 3"),
        format!("discnice_class_not_limited_bytes{{{class}}} 4096"),
        format!("discnice_class_fleet_allowed{{{class}}} 100.0"),
        format!("discnice_class_fleet_cap{{{class}}} 300.0"),
        format!("discnice_class_fleet_lease_seconds{{{class}}} 2.5"),
        "# TYPE discnice_class_bytes counter".into(),
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in\n{shown}");
    }
    assert!(!shown.contains("resource=\"total\"} 9"), "sums would be counted twice");
    assert!(shown.ends_with("# EOF\n"));
}

/// Names of metrics in a text: what begins with `discnice_` or, as recorded ones do, with `discnice:`.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let words = text.split(|c: char| !is_part(c));
    words.filter(|word| word.starts_with("discnice_") || word.starts_with("discnice:")).collect()
}

#[test]
fn dashboards_and_rules_show_what_is_told() {
    let shown = text(vec![sample()]);
    let samples = shown.lines().filter(|line| !line.starts_with('#'));
    let mut told: BTreeSet<&str> = samples.filter_map(|line| line.split('{').next()).collect();
    let rules = include_str!("../../../../packaging/prometheus/discnice.rules.yml");
    let recorded: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    assert_eq!(recorded.len(), 5);
    told.extend(&recorded);
    for (file, content, least) in [
        ("discnice.rules.yml", rules, 10),
        ("discnice.json", include_str!("../../../../packaging/grafana/discnice.json"), 4),
        (
            "discnice-fleet.json",
            include_str!("../../../../packaging/grafana/discnice-fleet.json"),
            8,
        ),
    ] {
        let used = names(content);
        let unknown: Vec<_> = used.difference(&told).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
        assert!(used.len() >= least, "{file}: {used:?}");
    }
    let fleet = names(include_str!("../../../../packaging/grafana/discnice-fleet.json"));
    assert!(recorded.iter().filter(|one| fleet.contains(*one)).count() >= 4);
}

#[test]
fn no_class_is_an_answer_too() {
    assert!(text(Vec::new()).ends_with("# EOF\n"));
}
