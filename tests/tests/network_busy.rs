//! Network thresholds that hold only while others are busy, on an interface of the test's own.

use std::process::Stdio;

use discnice_tests::process::run;
use discnice_tests::{product, skip};

const PYTHON: &str = "/usr/bin/python3";
/// An interface whose other end throws away what comes, as nobody there has the address.
const INTERFACE: &str = "ip link add eth0 type veth peer name veth0 && ip addr add 192.0.2.1/24 dev eth0 \
    && ip link set eth0 up && ip link set veth0 up && ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev eth0";
/// The threshold in bytes a second.
const LIMIT: f64 = 500e3;
/// When the others start, and for how long they send 1.4 MB/s; in seconds.
const OTHERS: (f64, f64) = (2.0, 3.0);

/// Bytes a second from one time to another, of lines with a time and what was sent until then.
fn rate(lines: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let within: Vec<_> = lines.iter().filter(|(time, _)| (from..to).contains(time)).collect();
    let (first, last) = (within.first().expect("lines"), within.last().expect("lines"));
    assert!(last.0 - first.0 > (to - from) / 2.0, "too few lines in {from} to {to}: {lines:?}");
    (last.1 - first.1) / (last.0 - first.0)
}

#[test]
fn a_sender_gives_way_to_others_on_the_network_and_to_them_alone() {
    let can = product::as_user("unshare")
        .args(["-Urn", "sh", "-c", INTERFACE])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) || !std::path::Path::new(PYTHON).exists() {
        skip!("no network namespaces for ordinary users, or no {PYTHON}");
    }
    let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/guests/datagrams.py");
    let script = format!(
        "{INTERFACE} && {{ {PYTHON} - 192.0.2.2 {} {} <{guest} >/dev/null & \
         exec {} run --net-up {LIMIT}B --when busy -- {PYTHON} - 192.0.2.2 0 9 8 <{guest}; }}",
        OTHERS.0,
        OTHERS.1,
        product::program().display(),
    );
    let shown =
        run(product::as_user("unshare").args(["-Urn", "sh", "-c", &script])).succeeded().text();
    let numbers = |line: &str| {
        let (time, sent) = line.split_once(' ')?;
        Some((time.parse().ok()?, sent.parse().ok()?))
    };
    let lines: Vec<(f64, f64)> = shown.lines().filter_map(numbers).collect();
    let (begin, end) = (OTHERS.0, OTHERS.0 + OTHERS.1);
    let (before, beside, after) = (
        rate(&lines, 0.2, begin - 0.2),
        rate(&lines, begin + 1.0, end - 0.2),
        rate(&lines, end + 2.0, 9.0),
    );
    assert!(before > 4.0 * LIMIT, "alone it is free: {before} of {LIMIT}");
    assert!(beside < 1.05 * LIMIT, "held beside others: {beside} of {LIMIT}");
    assert!(after > 4.0 * LIMIT, "free again: {after} of {LIMIT}");
}
