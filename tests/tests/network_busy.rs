//! Network thresholds that hold only while others are busy, on an interface of the test's own.

use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};

const PYTHON: &str = "/usr/bin/python3";
const GUESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guests");
/// An interface with another end that drops all packets, as nothing there has the address.
const INTERFACE: &str = "ip link add eth0 type veth peer name veth0 && ip addr add 192.0.2.1/24 dev eth0 \
    && ip link set eth0 up && ip link set veth0 up && ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev eth0";
/// An interface of 100 Mbit/s with 50 ms of queue, filled by the first sender, and a listener in
/// `$peer` at its other end.
const SLOW_LINK: &str = "ip link add eth0 type veth peer name eth0 netns $peer \
    && ip addr add 192.0.2.1/24 dev eth0 && ip link set eth0 up \
    && nsenter -t $peer -n sh -c 'ip addr add 192.0.2.2/24 dev eth0 && ip link set eth0 up' \
    && tc qdisc add dev eth0 root tbf rate 100mbit burst 64kb latency 50ms";
/// The threshold in bytes a second.
const LIMIT: f64 = 500e3;
/// When the others start, and for how long they send; in seconds.
const OTHERS: (f64, f64) = (2.0, 3.0);

/// Bytes a second from one time to another, of lines with a time and what was sent until then.
fn rate(lines: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let within: Vec<_> = lines.iter().filter(|(time, _)| (from..to).contains(time)).collect();
    let (first, last) = (within.first().expect("lines"), within.last().expect("lines"));
    assert!(last.0 - first.0 > (to - from) / 2.0, "too few lines in {from} to {to}: {lines:?}");
    (last.1 - first.1) / (last.0 - first.0)
}

/// A shell of an ordinary user with the right to make interfaces.
fn shell(script: &str) -> std::process::Command {
    let mut shell = product::as_user("unshare");
    shell.args(["-Urn", "sh", "-c", script]);
    shell
}

/// Whether a script can do what it is to do here.
fn can(script: &str) -> bool {
    let tried = shell(script).stderr(Stdio::null()).stdout(Stdio::null()).status();
    tried.is_ok_and(|status| status.success()) && std::path::Path::new(PYTHON).exists()
}

/// A user's classes know of one network at a time, and each script makes one.
static ONE_NETWORK: Mutex<()> = Mutex::new(());

/// Runs a script in which others send, while a sender with a threshold prints what it sent.
fn assert_gives_way(script: &str) {
    let _alone = ONE_NETWORK.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = run(&mut shell(script)).succeeded().text();
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

/// The product's way of running something with the threshold.
fn polite() -> String {
    format!("{} run --net-up {LIMIT}B --when busy --", product::program().display())
}

//= rate-windows/5.1-checkpoint
#[test]
fn a_sender_gives_way_to_others_on_the_network_and_to_them_alone() {
    if !can(INTERFACE) {
        skip!("no network namespaces for ordinary users, or no {PYTHON}");
    }
    let guest = format!("{GUESTS}/datagrams.py");
    assert_gives_way(&format!(
        "{INTERFACE} && {{ {PYTHON} - 192.0.2.2 {} {} <{guest} >/dev/null & \
         exec {} {PYTHON} - 192.0.2.2 0 9 8 <{guest}; }}",
        OTHERS.0,
        OTHERS.1,
        polite(),
    ));
}

/// Over TCP the others starve beside a sender that has filled the queue, and the interface cuts its
/// segments: what it counts in headers is not to be told beforehand.
#[test]
fn a_sender_over_tcp_gives_way_to_one_that_starves_beside_it() {
    let guest = format!("{GUESTS}/stream.py");
    let link = |listener: &str| format!("unshare -n {listener} & peer=$!; sleep 0.5; {SLOW_LINK}");
    if !can(&format!("{}; made=$?; kill $peer; exit $made", link("sleep 9"))) {
        skip!("no slow links for ordinary users, or no {PYTHON}");
    }
    assert_gives_way(&format!(
        "{} && {{ {PYTHON} - 192.0.2.2 {} {} <{guest} >/dev/null & \
         {} {PYTHON} - 192.0.2.2 0 9 <{guest}; }}",
        link(&format!("{PYTHON} - listen 2 <{guest} >/dev/null")),
        OTHERS.0,
        OTHERS.1,
        polite(),
    ));
}

/// An uplink of 20 Mbit/s with 20 ms and 300 ms of queue between here and `$peer`, by a program that is `$link`.
const UPLINK: &str = "$python - link $peer <$guest >/dev/null & link=$!; sleep 0.7; \
    ip addr add 192.0.2.1/24 dev wan0 && ip link set wan0 up \
    && nsenter -t $peer -n sh -c 'ip addr add 192.0.2.2/24 dev wan0 && ip link set wan0 up' \
    && echo reno >/proc/sys/net/ipv4/tcp_congestion_control";

/// The queue that others stand in shows what no counter of this machine does.
//= gray-box/7-distributed
#[test]
fn a_job_without_a_number_keeps_the_queue_of_its_uplink_short() {
    let [folder, alone] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let begin = format!(
        "export XDG_RUNTIME_DIR={}; python={PYTHON}; guest={GUESTS}/uplink.py",
        folder.path().display()
    );
    let link =
        |server: &str| format!("{begin}; unshare -n {server} & peer=$!; sleep 0.5; {UPLINK}");
    let end = "made=$?; kill $peer $link; exit $made";
    let root = |script: &str| {
        let mut shell = std::process::Command::new("unshare");
        shell.args(["-n", "sh", "-c", script]);
        shell
    };
    let tried = run(&mut root(&format!("{}; {end}", link("sleep 9"))));
    if tried.status != Some(0) || !std::path::Path::new(PYTHON).exists() {
        skip!("no /dev/net/tun, not the superuser, or no {PYTHON}");
    }
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let refused = compiler.compile("refused.c");
    let beside = |prefix: &str| {
        format!(
            "{{ {prefix} $python - send 192.0.2.2 3.3 <$guest & sender=$!; \
             $python - probe 192.0.2.2 1.5 1.5 <$guest; wait $sender; }}"
        )
    };
    let polite = format!("{} run --", product::program().display());
    // As where Yama's `ptrace_scope` is not 0: a daemon of its own that cannot borrow connections.
    let unborrowed = format!(
        "env XDG_RUNTIME_DIR={} {} {} {} {polite}",
        alone.path().display(),
        refused.display(),
        libc::SYS_pidfd_getfd,
        libc::EPERM
    );
    let server = format!("{PYTHON} - serve <{GUESTS}/uplink.py");
    let sent = [String::new(), polite, unborrowed].map(|prefix| beside(&prefix)).join(" && ");
    let script = format!("{} && {sent}; {end}", link(&server));
    let shown = run(&mut root(&script)).succeeded().text();
    let numbers: Vec<f64> = shown.lines().filter_map(|line| line.parse().ok()).collect();
    let [queue, bare, others @ ..] = &*numbers else { panic!("numbers: {shown}") };
    let queue = queue - 20.0;
    assert!(queue > 40.0, "the link has a queue: {queue} ms");
    assert_eq!(others.len(), 4, "{shown}");
    for (held, got) in others.chunks(2).map(|pair| (pair[0], pair[1])) {
        assert!(held - 20.0 < queue / 2.0, "{held} ms, without it a queue of {queue} ms: {shown}");
        assert!(got > bare / 2.0, "it keeps the link busy: {got} of {bare} bytes a second");
    }
}
