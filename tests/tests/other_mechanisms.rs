//! Where a mechanism is not to be had, or cannot limit what is asked for: another one holds, or one line says what does
//! not hold.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::attaching::{Sleeper, assert_refused, attach, by_way_of};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, run, until, with_in_environment, within};
use discnice_tests::{cold, product, skip};
use serde_json::Value;

/// Words that execute what follows without this system call.
fn without(program: &Path, call: i64, errno: i32) -> [String; 3] {
    [program.display().to_string(), call.to_string(), errno.to_string()]
}

#[test]
fn without_seccomp_a_program_runs_and_one_line_says_so() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let refused = compiler.compile("refused.c");
    for errno in [libc::ENOSYS, libc::EINVAL] {
        let way = without(&refused, libc::SYS_seccomp, errno);
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        let words = ["run", "--disk", "1M", "--mechanism", "seccomp", "--", "sh", "-c", "exit 7"];
        let outcome = by_way_of(&way, &words);
        assert_eq!(outcome.status, Some(7), "{outcome:?}");
        assert_eq!(outcome.complaint().lines().count(), 1, "{outcome:?}");
        assert!(outcome.complaint().contains("this kernel"), "{outcome:?}");
    }
}

#[test]
fn what_only_the_library_can_limit_is_told_of() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let Ok(reader) = compiler.compile_with("reader.c", &["-static"]) else {
        skip!("no static libc")
    };
    let reader = reader.to_str().expect("UTF-8");
    let command = [reader, "/etc/passwd"];
    for (limit, rate, mechanism) in [
        ("--meta-ops", "100", "auto"),
        ("--meta-ops", "100", "freeze"),
        ("--disk-iops", "100", "freeze"),
        ("--net", "1M", "seccomp"),
    ] {
        let words = |strict: &'static [&str]| {
            [&["run", limit, rate, "--mechanism", mechanism][..], strict, &["--"], &command]
                .concat()
        };
        let told = run(&mut product::discnice(words(&[])));
        let complaint = told.complaint();
        assert_eq!((told.status, complaint.lines().count()), (Some(0), 1), "{told:?}");
        assert!(
            complaint.starts_with(&format!("discnice: {limit} does not hold: ")),
            "{complaint}"
        );
        assert_refused(&run(&mut product::discnice(words(&["--strict"]))), "does not hold");
    }
    // A child of a program with the library in it.
    let class = Class::new("50M");
    run(&mut class.command(["true"])).succeeded();
    let mut job = product::discnice(["run", "--class", class.name(), "--disk", "50M"]);
    job.args(["--meta-ops", "100", "--", "sh", "-c", "\"$0\" /etc/passwd 60; true", reader]);
    let job = Group::start_silent(&mut job);
    // Not that of the shell, which had listed it before it executed this.
    let name = Path::new(reader).file_name().and_then(|name| name.to_str()).expect("UTF-8");
    let is_told = || {
        let shown = class.show();
        shown["members"].as_array().is_some_and(|all| {
            all.iter().any(|one| one["misses"] == "--meta-ops" && one["name"] == name)
        })
    };
    within(Duration::from_secs(5), "that it is told of by its name", is_told);
    let status = run(&mut product::discnice(["status"])).text();
    assert!(status.contains("NOT LIMITED: --meta-ops needs the library in it"), "{status}");
    drop(job);
}

#[test]
fn a_program_that_another_has_executed_below_a_filter_has_its_own_name() {
    let class = Class::new("50M");
    let mut job = product::discnice(["run", "--class", class.name(), "--disk", "50M"]);
    job.args(["--mechanism", "seccomp", "--", "sh", "-c", "exec sleep 60"]);
    let job = Group::start_silent(&mut job);
    let is_named = || {
        let shown = run(&mut product::discnice(["class", "show", class.name(), "--json"]));
        let shown: Value = serde_json::from_slice(&shown.output).unwrap_or_default();
        shown[0]["members"][0]["name"] == "sleep"
    };
    within(Duration::from_secs(5), "that it has the name of what runs", is_named);
    drop(job);
}

#[test]
fn without_seccomp_a_static_program_is_held_from_outside() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let refused = compiler.compile("refused.c");
    let Ok(reader) = compiler.compile_with("reader.c", &["-static"]) else {
        skip!("no static libc")
    };
    let data = folder.path().join("data");
    cold::make(&data, 8 << 20).expect("room");
    let words = [&reader, &data].map(|path| path.to_str().expect("UTF-8"));
    // As before Linux 3.17, and before Linux 5.19.
    for errno in [libc::ENOSYS, libc::EINVAL] {
        let way = without(&refused, libc::SYS_seccomp, errno);
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        for strict in [&[][..], &["--strict"]] {
            let class = Class::new("4M");
            let run = ["run", "--class", class.name(), "--disk", "4M"];
            cold::drop_all(&data).expect("a file");
            let started = Instant::now();
            let held = by_way_of(&way, &[&run[..], strict, &["--"], &words].concat());
            let elapsed = started.elapsed();
            assert_eq!((held.status, &*held.complaint()), (Some(0), ""), "{errno}: {held:?}");
            assert!(elapsed >= Duration::from_millis(1800), "8 MiB at 4 MiB/s took {elapsed:?}");
        }
        let run = |options: &[&str]| {
            by_way_of(&way, &[&["run", "--meta-ops", "9"][..], options, &["--"], &words].concat())
        };
        let told = run(&[]);
        let complaint = told.complaint();
        assert_eq!((told.status, complaint.lines().count()), (Some(0), 1), "{told:?}");
        assert!(complaint.starts_with("discnice: --meta-ops does not hold: "), "{complaint}");
        assert_refused(&run(&["--strict"]), "--meta-ops does not hold");
    }
}

/// A user's daemon of its own that may not use ptrace(2), which no scope of Yama forbids for descendants.
fn without_ptrace(folder: &Path) -> Option<Vec<String>> {
    let refused = Compiler::new(folder)?.compile("refused.c");
    let alone = folder.join("run");
    run(product::as_user("mkdir").args(["-m", "700"]).arg(&alone)).succeeded();
    let mut way = vec!["env".to_owned(), format!("XDG_RUNTIME_DIR={}", alone.display())];
    way.extend(without(&refused, libc::SYS_ptrace, libc::EPERM));
    Some(way)
}

#[test]
fn without_ptrace_it_is_held_by_signals() {
    let folder = product::folder();
    let Some(way) = without_ptrace(folder.path()) else { skip!("no compiler") };
    let way: Vec<&str> = way.iter().map(String::as_str).collect();
    let data = folder.path().join("data");
    fs::write(&data, vec![1; 16 << 20]).expect("room");
    let script =
        format!("while :; do dd if={} of=/dev/null bs=64k iflag=direct; done", data.display());
    let mut reader = product::as_user("setsid");
    reader.args(["sh", "-c", &script]).stdin(Stdio::null()).stderr(Stdio::null());
    let reader = Sleeper(reader.spawn().expect("setsid(1)")).executing("sh");
    let class = Class::new("1M");
    by_way_of(&way, &attach(&class, &reader.id())).succeeded();
    // Between one dd's end and the next one's birth there is only the shell, which waits, and moves nothing.
    let is_held = || {
        let shown = class.show();
        let members = shown["members"].as_array().expect("members");
        shown["by_mechanism"]["signals"].as_u64() > Some(0)
            && members.iter().any(|member| member["mechanism"] == "signals")
    };
    within(Duration::from_secs(5), "that it is held by signals", is_held);
    by_way_of(&way[..2], &["detach", &reader.id()]).succeeded();
}

#[test]
fn a_process_that_is_held_by_signals_and_continued_from_elsewhere_is_stopped_again() {
    let folder = product::folder();
    let Some(way) = without_ptrace(folder.path()) else { skip!("no compiler") };
    let way: Vec<&str> = way.iter().map(String::as_str).collect();
    // Free it would write that within a few seconds, and end.
    let to = format!("of={}", folder.path().join("out").display());
    let mut writer = product::as_user("setsid");
    writer.args(["dd", "if=/dev/zero", &to, "bs=64k", "count=8192", "oflag=direct"]);
    writer.stdin(Stdio::null()).stderr(Stdio::null());
    let writer = Sleeper(writer.spawn().expect("setsid(1)")).executing("dd");
    let class = Class::new("256K");
    by_way_of(&way, &attach(&class, &writer.id())).succeeded();
    for round in 0..3 {
        assert!(stops(&writer), "round {round}");
        run(product::as_user("kill").args(["-CONT", &writer.id()])).succeeded();
    }
    assert!(stops(&writer));
    by_way_of(&way[..2], &["detach", &writer.id()]).succeeded();
}

#[test]
fn what_is_left_stopped_by_a_daemon_that_was_killed_with_its_helpers_goes_on() {
    let folder = product::folder();
    let Some(way) = without_ptrace(folder.path()) else { skip!("no compiler") };
    let way: Vec<&str> = way.iter().map(String::as_str).collect();
    let to = format!("of={}", folder.path().join("out").display());
    for command in ["status", "detach"] {
        let mut writer = product::as_user("setsid");
        writer.args(["dd", "if=/dev/zero", &to, "bs=64k", "oflag=direct"]);
        writer.stdin(Stdio::null()).stderr(Stdio::null());
        let writer = Sleeper(writer.spawn().expect("setsid(1)")).executing("dd");
        let class = Class::new("256K");
        by_way_of(&way, &attach(&class, &writer.id())).succeeded();
        // A helper that sees the daemon's end before its own lets the process go.
        let left = (0..20).any(|_| {
            assert!(stops(&writer));
            kill_together(way[1]);
            std::thread::sleep(Duration::from_millis(200));
            let left = stands(&writer);
            if !left {
                let _ =
                    by_way_of(&way, &["run", "--class", class.name(), "--disk", "256K", "true"]);
            }
            left
        });
        assert!(left, "it was never left stopped");
        let id = writer.id();
        let words = if command == "detach" { vec![command, &id] } else { vec![command] };
        by_way_of(&way[..2], &words).succeeded();
        until(command, || !stands(&writer));
    }
}

/// Kills all of policyd that has this in its environment.
fn kill_together(mark: &str) {
    let is_daemon = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"policyd")
    };
    let daemons = with_in_environment(mark).into_iter().filter(is_daemon);
    let daemons: Vec<String> = daemons.map(|id| id.to_string()).collect();
    for signal in ["-STOP", "-KILL"] {
        let _ = run(Command::new("kill").arg(signal).args(&daemons));
    }
}

fn stands(process: &Sleeper) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Whether a process is seen stopped within a second.
fn stops(process: &Sleeper) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        stands(process)
    })
}
