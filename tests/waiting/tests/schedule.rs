//! `--until`, `--then` and `--finish-by` of `run` and `attach`.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::attaching::Sleeper;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, until, wait};
use discnice_tests::product;
use serde_json::Value;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A command of ours.
struct Started {
    group: Group,
    folder: TempDir,
}

impl Started {
    fn start(mut command: Command) -> Self {
        Self::start_in(product::folder(), &mut command)
    }

    fn start_in(folder: TempDir, command: &mut Command) -> Self {
        let errors = File::create(folder.path().join("errors")).expect("a file");
        command.stdout(Stdio::null()).stderr(errors).current_dir(folder.path());
        Self { group: Group::start(command), folder }
    }

    fn told(&self) -> String {
        fs::read_to_string(self.folder.path().join("errors")).expect("a file")
    }

    fn until_told(&self, what: &str) {
        until(what, || self.told().contains(what));
    }
}

fn show(class: &str) -> Value {
    let shown = run(&mut product::discnice(["class", "show", class, "--json"]));
    serde_json::from_slice::<Value>(&shown.output).map_or(Value::Null, |all| all[0].clone())
}

/// Processes in the directory of what was started.
fn sleepers(started: &Started) -> usize {
    let folder = started.folder.path();
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    all.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
        .filter(|entry| {
            let name = fs::read_to_string(entry.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "sleep")
        })
        .count()
}

#[test]
fn a_job_ends_with_all_its_children() {
    let script = "sleep 61 & sleep 62 & wait";
    let mut job = Started::start(product::discnice(["run", "--until", "+1", "sh", "-c", script]));
    let ended = wait(&mut job.group, &"the job");
    assert_eq!(ended.signal(), Some(libc::SIGTERM), "{}", job.told());
    assert!(job.told().contains("the job is asked to end (--until)"), "{}", job.told());
    until("its children end", || sleepers(&job) == 0);
}

#[test]
fn a_job_in_a_class_ends_alone() {
    let class = Class::new("unlimited");
    let other = Started::start(class.command(["sleep", "60"]));
    until("the other runs", || sleepers(&other) == 1);
    let mut run_it = product::discnice(["run", "--class", class.name(), "--until", "+1"]);
    run_it.args(["sleep", "60"]);
    let mut job = Started::start(run_it);
    assert_eq!(wait(&mut job.group, &"the job").signal(), Some(libc::SIGTERM));
    assert_eq!(sleepers(&other), 1, "the other goes on");
}

#[test]
fn a_job_stands_and_goes_on() {
    let class = Class::new("unlimited");
    let count = "while :; do echo >>log; sleep 0.02; done";
    let mut run_it = product::discnice(["run", "--class", class.name(), "--until", "+1"]);
    run_it.args(["--then", "stop", "sh", "-c", count]);
    let job = Started::start(run_it);
    job.until_told("the job is paused (--until); `discnice resume ");
    let written = || fs::metadata(job.folder.path().join("log")).map_or(0, |log| log.len());
    until("it stands", || {
        let before = written();
        std::thread::sleep(Duration::from_millis(200));
        written() == before
    });
    let told = job.told();
    let name =
        told.split("resume ").nth(1).and_then(|rest| rest.split('`').next()).expect("a name");
    let before = written();
    run(&mut product::discnice(["resume", name])).succeeded();
    until("it goes on", || written() > before);
}

#[test]
fn a_job_goes_on_without_limits() {
    let folder = product::folder();
    let write = ["dd", "if=/dev/zero", "of=made", "bs=64k", "count=2000"];
    let mut run_it = product::discnice(["run", "-d", "2M", "--until", "+1", "--then", "continue"]);
    run_it.args(write);
    let mut job = Started::start_in(folder, &mut run_it);
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert!(job.told().contains("goes on without limits (--until)"), "{}", job.told());
}

#[test]
fn an_attached_process_ends() {
    let mut sleep = product::as_user("sleep");
    sleep.process_group(0);
    let mut sleeper = Sleeper::start(sleep);
    let mut attach = Started::start(product::discnice(["attach", "--until", "+1", &sleeper.id()]));
    let ended = wait(&mut sleeper.0, &"sleep");
    assert_eq!(ended.signal(), Some(libc::SIGTERM), "{}", attach.told());
    assert!(wait(&mut attach.group, &"attach").success());
}

#[test]
fn the_lowest_rate_that_ends_in_time() {
    let class = Class::new("unlimited");
    let folder = product::folder();
    fs::write(folder.path().join("data"), vec![1; 48 << 20]).expect("room");
    run(Command::new("sync").arg("data").current_dir(folder.path())).succeeded();
    let mut run_it = product::discnice(["run", "--class", class.name(), "--disk", "400M"]);
    run_it.args(["--finish-by", "+6", "dd", "if=data", "of=/dev/null", "bs=64k", "iflag=direct"]);
    let begun = Instant::now();
    let mut job = Started::start_in(folder, &mut run_it);
    until("the rate is lower", || {
        let limit = show(class.name())["limit_total"].as_u64().unwrap_or(0);
        limit < 20 * MIB && limit > 4 * MIB
    });
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert!(begun.elapsed() > Duration::from_secs(3), "not at once: {:?}", begun.elapsed());
    assert!(!job.told().contains("not known"), "{}", job.told());
}

/// Other jobs of the class go on at that rate, and the next job with a time to end by may take no more.
#[test]
fn a_class_has_its_usual_rate_again_when_the_job_ends_or_its_parent_is_killed() {
    for is_killed in [false, true] {
        let class = Class::new("50M");
        let mut run_it = product::discnice(["run", "--class", class.name(), "--disk", "50M"]);
        run_it.args(["--disk-total", "20M", "--finish-by", "+60", "sleep", "2"]);
        let mut job = Started::start(run_it);
        let limit = || show(class.name())["limit_total"].as_u64().unwrap_or(0);
        until("the rate is lower", || (1..10 * MIB).contains(&limit()));
        if is_killed {
            // It, not its group, with which a guardian in it would die, too.
            discnice_tests::process::send(job.group.id().cast_signed(), libc::SIGKILL);
        }
        let _ = wait(&mut job.group, &"the job");
        until("the usual rate holds", || limit() == 50 * MIB);
    }
}

#[test]
fn a_file_that_was_read_to_its_end_was_known() {
    let folder = product::folder();
    fs::write(folder.path().join("data"), vec![1; 2 << 20]).expect("room");
    let script = "exec 3<data; head -c 1M <&3 >/dev/null; sleep 2; cat <&3 >/dev/null; sleep 6";
    let mut run_it = product::discnice(["run", "-d", "9M", "--finish-by", "+60"]);
    let mut job = Started::start_in(folder, run_it.args(["sh", "-c", script]));
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert_eq!(job.told(), "");
}

#[test]
fn a_bound_tells_what_is_left() {
    let class = Class::new("unlimited");
    let mut run_it = product::discnice(["run", "--class", class.name(), "--disk", "400M"]);
    run_it.args(["--disk-total", "48M", "--finish-by", "+6"]);
    run_it.args(["dd", "if=/dev/zero", "of=made", "bs=64k", "count=760"]);
    let begun = Instant::now();
    let mut job = Started::start(run_it);
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert!(begun.elapsed() > Duration::from_secs(3), "not at once: {:?}", begun.elapsed());
}

#[test]
fn what_is_not_known_and_what_is_late_is_told() {
    let mut job =
        Started::start(product::discnice(["run", "-d", "9M", "--finish-by", "+60", "sleep", "7"]));
    assert!(wait(&mut job.group, &"the job").success());
    assert!(
        job.told().contains("is not known") && job.told().contains("9 MiB/s"),
        "{}",
        job.told()
    );
    let mut job =
        Started::start(product::discnice(["run", "-d", "9M", "--finish-by", "+1", "sleep", "3"]));
    assert!(wait(&mut job.group, &"the job").success());
    assert!(job.told().contains("the job has not ended (--finish-by)"), "{}", job.told());
}

/// A command with this folder for its configuration and its state.
fn with_own<'a>(command: &'a mut Command, folder: &TempDir) -> &'a mut Command {
    let places = ["XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"];
    command.envs(places.map(|place| (place, folder.path())))
}

/// What a job tells that runs by this configuration, with these words behind `--finish-by`. Its limit is not lifted, and never
/// above `most`.
fn told_by_a_limited_job(text: &str, words: &[&str], most: u64) -> String {
    let folder = product::private_folder();
    let own = folder.path().join("discnice");
    fs::create_dir(&own).expect("a folder");
    fs::write(own.join("config.toml"), text).expect("a file");
    let mut run_it = product::discnice(["run", "--finish-by"]);
    run_it.args(words).args(["sleep", "3"]);
    let errors = File::create(folder.path().join("errors")).expect("a file");
    let mut job = with_own(&mut run_it, &folder).stderr(errors).spawn().expect("a process");
    let class = format!("@sleep-{}", job.id());
    let mut seen = false;
    while job.try_wait().expect("a child").is_none() {
        let mut show = product::discnice(["class", "show", &class, "--json"]);
        let shown = run(with_own(&mut show, &folder));
        let shown = serde_json::from_slice::<Value>(&shown.output).ok();
        let limit = shown.map(|all| all[0]["limit_total"].as_u64());
        // Just made, it has none yet.
        if let Some(limit) = limit.filter(|limit| seen || limit.is_some()) {
            seen = true;
            assert!(limit.is_some_and(|limit| limit <= most), "{words:?}: {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(seen, "{words:?}: no limit was seen");
    fs::read_to_string(folder.path().join("errors")).expect("a file")
}

#[test]
fn no_limit_is_lifted_that_the_configuration_or_giving_way_sets() {
    let cases: [(&str, &[&str], u64); 3] = [
        ("[preset.slow]\ndisk = \"1M\"\n", &["--preset", "slow"], MIB),
        ("[default]\ndisk = \"1M\"\n", &[], MIB),
        ("", &[], u64::MAX),
    ];
    for (text, options, most) in cases {
        let told = |words: &[&str]| told_by_a_limited_job(text, &[words, options].concat(), most);
        assert_eq!(told(&["+1h"]), "", "nothing is known of it");
        assert_eq!(told(&["+20", "--disk-total", "1G"]), "", "it is to move more than it may");
        let late = told(&["+1"]);
        assert!(late.contains("it goes on at ") && !late.contains("unlimited"), "{late}");
    }
}
