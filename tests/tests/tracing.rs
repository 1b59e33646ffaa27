//! `discnice trace`: each call with what it cost and why it went on, and nothing once no trace runs.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, send, until};
use discnice_tests::{cold, product, skip};
use serde_json::Value;

/// A shell in a class that executes a command once it is told to.
struct Waiting {
    shell: Child,
    input: ChildStdin,
}

impl Waiting {
    fn new(mut command: Command, words: &[&str]) -> Self {
        let script = "while read line; do [ \"$line\" = go ] && exec \"$@\"; done";
        command.args(["sh", "-c", script, "sh"]).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = command.spawn().expect("it starts");
        let input = shell.stdin.take().expect("a pipe");
        Self { shell, input }
    }

    /// Lets the command start in a class that is traced; returns its records.
    fn go(mut self, class: &Class) -> Vec<Value> {
        let trace = Trace::of(class);
        self.input.write_all(b"go\n").expect("it reads");
        assert!(self.shell.wait().expect("it ends").success());
        let own = self.shell.id();
        trace.records.iter().filter(|record| record["process"] == own).collect()
    }
}

/// A trace that is read as its records come; it ends when its class does.
struct Trace {
    process: Child,
    records: Receiver<Value>,
}

impl Trace {
    /// Traces a class, once it is there.
    fn of(class: &Class) -> Self {
        until_there(class);
        let mut command = product::discnice(["trace", "--json", class.name()]);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let (sender, records) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let record = serde_json::from_str(&line).expect("one object a line");
                if sender.send(record).is_err() {
                    return;
                }
            }
        });
        until("it is traced", || class.show()["traced"] == true);
        Self { process, records }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn until_there(class: &Class) {
    until("the class is there", || {
        run(&mut product::discnice(["class", "show", class.name()])).status == Some(0)
    });
}

fn sum(records: &[&Value], field: &str) -> f64 {
    records.iter().map(|record| record[field].as_f64().expect("a number")).sum()
}

/// What dd reads and how often, of a file that is not cached.
const PIECE: usize = 16 << 10;
const PIECES: usize = 96;

fn dd(folder: &Path) -> [String; 4] {
    let file = folder.join("data");
    cold::make(&file, PIECE * PIECES).expect("room for a file");
    let from = format!("if={}", file.display());
    ["dd".into(), from, "of=/dev/null".into(), format!("bs={PIECE}")]
}

#[test]
fn each_call_is_shown_with_its_cost_and_its_reason() {
    let (folder, class) = (product::folder(), Class::new("1M"));
    let words = dd(folder.path());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let waiting = Waiting::new(class.run(), &words);
    let records = waiting.go(&class);
    let calls = |name: &str, result: i64| -> Vec<&Value> {
        let is_one = |record: &&Value| record["call"] == name && record["result"] == result;
        records.iter().filter(is_one).collect()
    };
    // dd moves the file to its standard input.
    let reads: Vec<&Value> =
        calls("read", PIECE as i64).into_iter().filter(|read| read["first"] == 0).collect();
    assert_eq!(reads.len(), PIECES, "{records:?}");
    let (charged, held) = (sum(&reads, "charged"), sum(&reads, "held_seconds"));
    let size = (PIECE * PIECES) as f64;
    assert!((0.9..1.3).contains(&(charged / size)), "{charged} bytes of {size}");
    // One and a half MiB at one MiB a second, less what passes at once.
    assert!((0.9..3.0).contains(&held), "held {held} s");
    let took = sum(&reads, "took_seconds");
    assert!(held <= took, "held {held} of {took} s");
    for read in &reads {
        let why = read["why"].as_str().expect("text");
        let known = ["cached", "nothing-owed", "paid-ahead", "reserved", "slices"];
        assert!(known.contains(&why), "{read}");
        let was_held = read["held_seconds"].as_f64() > Some(0.0);
        assert!(!was_held || ["reserved", "slices"].contains(&why), "{read}");
    }
}

#[test]
fn what_is_held_below_a_filter_or_from_outside_is_shown() {
    if !Path::new("/bin/busybox").exists() {
        skip!("no static busybox");
    }
    for (mechanism, call) in [("seccomp", "read"), ("freeze", "account")] {
        let (folder, class) = (product::folder(), Class::new("2M"));
        let [_, from, to, size] = dd(folder.path());
        let words = ["/bin/busybox", "dd", &from, &to, &size];
        let waiting = Waiting::new(class.run_by(mechanism), &words);
        let records = waiting.go(&class);
        // What it cost to execute the program is not of these calls; the account has it, too.
        let is_one = |record: &&Value| {
            record["call"] == call && (call == "account" || record["result"] == PIECE)
        };
        let shown: Vec<&Value> = records.iter().filter(is_one).collect();
        let (charged, all) = (sum(&shown, "charged"), (PIECE * PIECES) as f64);
        let program = if call == "account" { 4e6 } else { 0.3 * all };
        assert!((0.9 * all..all + program).contains(&charged), "{mechanism}: {charged}: {shown:?}");
        assert!(sum(&shown, "held_seconds") > 0.1, "{mechanism}: {records:?}");
    }
}

#[test]
fn counts_are_shown_by_reason_and_no_trace_stays_behind() {
    let class = Class::new("50M");
    let script = "while :; do cat /proc/self/stat /etc/passwd; done";
    let mut job = class.run();
    job.args(["sh", "-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut job = job.spawn().expect("it starts");
    until_there(&class);
    let mut count = product::discnice(["trace", "--count", "--for", "1s", class.name()]);
    let told = run(&mut count).succeeded().text();
    let first = told.lines().next().expect("a line");
    assert!(first.trim_start().starts_with("calls"), "{told}");
    assert!(told.contains("expected in the page cache"), "{told}");
    let mut killed = Trace::of(&class);
    killed.process.kill().expect("it runs");
    until("it is traced no more", || class.show()["traced"] == false);
    job.kill().expect("it runs");
    let _ = job.wait();
}

#[test]
fn what_was_counted_is_shown_when_a_signal_ends_the_trace() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let class = Class::new("50M");
        let mut job = class.command(["sh", "-c", "while :; do cat /dev/null; done"]);
        let _job = Group::start(&mut job);
        until_there(&class);
        let mut command = product::discnice(["trace", "--count", class.name()]);
        let trace = command.stdout(Stdio::piped()).spawn().expect("it starts");
        until("it is traced", || class.show()["traced"] == true);
        std::thread::sleep(Duration::from_millis(300));
        send(trace.id().cast_signed(), signal);
        let outcome = trace.wait_with_output().expect("it ends");
        let shown = String::from_utf8_lossy(&outcome.stdout);
        assert!(outcome.status.success() && shown.lines().count() > 1, "{outcome:?}");
    }
}

#[test]
fn calls_are_counted_by_reason_without_a_trace() {
    let has_static = Path::new("/bin/busybox").exists();
    for (mechanism, by) in [("preload", "library"), ("seccomp", "filter"), ("freeze", "watcher")] {
        if by != "library" && !has_static {
            skip!("no static busybox");
        }
        let (folder, class) = (product::folder(), Class::new("50M"));
        let [dd, from, to, size] = dd(folder.path());
        let mut command = class.run_by(mechanism);
        let program: &[&str] = if by == "library" { &[] } else { &["/bin/busybox"] };
        // The shell stays until all is counted: what a process did after the last look is in its parent's account.
        let reads = ["sh", "-c", "\"$@\"; read line", "sh"];
        command.args(program).args(reads).args(program).args([&dd, &from, &to, &size]);
        let mut shell =
            command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        until_there(&class);
        let rows = || -> Vec<Value> {
            let mut counted = product::discnice(["status", "--json", "--why", class.name()]);
            let told = run(&mut counted).succeeded().text();
            serde_json::from_str(&told).expect("an array")
        };
        let sum = |field: &str| -> u64 {
            let rows = rows();
            let of = rows.iter().filter(|row| row["by"] == by && row["why"] != "elsewhere");
            of.map(|row| row[field].as_u64().expect("a number")).sum()
        };
        until("all is counted", || sum("bytes") >= (PIECE * PIECES) as u64);
        drop(shell.stdin.take());
        let _ = shell.wait();
        let calls = sum("calls");
        let wanted = if by == "watcher" { 1 } else { PIECES as u64 };
        assert!((wanted..10 * PIECES as u64).contains(&calls), "{by}: {:?}", rows());
        let why = |row: &Value| row["by"] == by && (row["why"] == "account") == (by == "watcher");
        assert!(rows().iter().any(why), "{by}: {:?}", rows());
        let table = run(&mut product::discnice(["status", "--why", class.name()])).text();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines.len() > 1 && lines[0].ends_with("WHY"), "{table}");
        assert!(lines.iter().any(|line| line.contains(by)), "{table}");
    }
    let refused = run(&mut product::discnice(["status", "--why", "no-such-class"]));
    assert!(refused.status != Some(0), "{refused:?}");
}

#[test]
fn what_cannot_be_traced_is_refused_in_a_line() {
    for (subject, wanted) in [
        ("no-such-class", "no class no-such-class; see `discnice status`"),
        ("1999999999", "no process"),
        ("1", "is in no class"),
    ] {
        let refused = run(&mut product::discnice(["trace", subject]));
        let complaint = refused.complaint();
        assert_eq!((refused.status, complaint.lines().count()), (Some(125), 1), "{refused:?}");
        assert!(complaint.contains(wanted), "{complaint}");
    }
}
