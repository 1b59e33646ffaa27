//! Sources of metrics that are wrong in every way: the job runs as if it were not regulated.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a job of ours takes by itself; longer than any judgment needs.
const ALONE: Duration = Duration::from_millis(3000);

struct Told {
    summary: Value,
    lines: String,
}

/// Runs all cases side by side; each takes seconds in which it does nothing.
fn side_by_side<T: Sync>(cases: &[T], run: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| run(case));
        }
    });
}

/// Runs a shell that does `step` every 50 ms, with `$i` counting up and `$log` in a scratch folder, regulated
/// by `metric`, in which LOG stands for that file.
fn regulated(step: &str, metric: &str) -> Told {
    let scene = tempfile::tempdir().unwrap();
    let log = scene.path().join("log");
    let metric = metric.replace("LOG", log.to_str().unwrap());
    let script = format!("i=0; while [ $i -lt 60 ]; do i=$((i+1)); {step}; sleep 0.05; done");
    let begun = Instant::now();
    let mut job = Command::new("sh")
        .args(["-c", &script])
        .env("log", &log)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let words = ["attach", "--polite", "--no-probation", "--json", "--metric", &metric];
    let regulator = discnice(scene.path()).args(words).arg(job.id().to_string()).spawn().unwrap();
    assert!(job.wait().unwrap().success());
    let took = begun.elapsed();
    assert!(took >= ALONE && took < 2 * ALONE, "{metric}: {took:?}");
    told(&regulator.wait_with_output().unwrap())
}

fn discnice(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.env("XDG_RUNTIME_DIR", scene).env("XDG_STATE_HOME", scene.join("state"));
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn told(output: &Output) -> Told {
    assert!(output.status.success(), "{output:?}");
    let told = Told {
        summary: serde_json::from_slice(&output.stdout).unwrap(),
        lines: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert_eq!(told.summary["suspensions"], 0, "{}", told.summary);
    told
}

#[test]
fn numbers_that_are_no_progress() {
    let steps = [
        "echo $((1000 - i)) done > $log",
        "echo $((i % 7 * 1000)) done > $log",
        "echo -$i done > $log",
        "echo 5 done > $log",
        "echo NaN done > $log",
        "echo inf done > $log",
        "echo 1e300 done > $log",
    ];
    side_by_side(&steps, |step| {
        let told = regulated(step, r"match:LOG:(\S+) done");
        assert!(told.summary["lasted_s"].as_f64().unwrap() > 2.0, "{step}: {}", told.summary);
    });
}

#[test]
fn logs_that_rotate_or_go() {
    let rotating = "echo $i >> $log; [ $((i % 8)) != 0 ] || mv $log $log.1";
    let told = regulated(rotating, "lines:LOG");
    // Seven times the name is missing until the next line is written; each may be seen, once.
    assert!(told.lines.matches("runs unregulated").count() <= 7, "{}", told.lines);
    let truncated = "[ $((i % 8)) != 0 ] || : > $log; echo $i >> $log";
    assert_eq!(regulated(truncated, "lines:LOG").summary["suspensions"], 0);
    let vanishing = "[ $i -lt 20 ] && echo $i >> $log || rm -f $log";
    let told = regulated(vanishing, "position:LOG");
    assert!(told.summary["blind_looks"].as_u64().unwrap() > 3, "{}", told.summary);
    assert!(told.lines.contains("runs unregulated"), "{}", told.lines);
}

#[test]
fn files_that_are_none() {
    let steps = ["[ -p $log ] || mkfifo $log", "mkdir -p $log", "ln -sf $log $log"];
    let metrics = ["lines:LOG", "openmetrics:LOG#done"];
    let cases: Vec<_> =
        steps.iter().flat_map(|step| metrics.map(|metric| (*step, metric))).collect();
    side_by_side(&cases, |(step, metric)| {
        let told = regulated(step, metric);
        assert!(told.summary["blind_looks"].as_u64().unwrap() > 3, "{step} {}", told.summary);
    });
}

#[test]
fn an_endpoint_that_hangs_or_babbles() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let metric = format!("openmetrics:http://{}/#done", silent.local_addr().unwrap());
    let told = regulated(":", &metric);
    assert!(told.summary["blind_looks"].as_u64().unwrap() > 3, "{}", told.summary);
    assert_eq!(told.lines.matches("runs unregulated").count(), 1, "{}", told.lines);
    let babbling = "echo 'done 5 5 5\\n# done\\ndone{\\ndone} x' > $log";
    assert_eq!(regulated(babbling, "openmetrics:LOG#done").summary["suspensions"], 0);
}
