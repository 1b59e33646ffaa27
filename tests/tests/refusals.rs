//! What stands in the way of holding from outside: other users, debuggers, used-up limits of the system, calls that
//! it forbids. One clear line and nothing changed, or another mechanism.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, Outcome, run, with_in_environment, within};
use discnice_tests::{cold, product, skip};

/// A process that sleeps.
struct Sleeper(Child);

impl Sleeper {
    fn start(mut command: Command) -> Self {
        Self(command.arg("100").stdin(Stdio::null()).spawn().expect("sleep(1)")).executing("sleep")
    }

    /// Executes itself, as a process that changes its user hides what it does until then.
    fn executing(self, name: &str) -> Self {
        let comm = format!("/proc/{}/comm", self.0.id());
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::read_to_string(&comm).unwrap_or_default().trim_end() != name {
            assert!(Instant::now() < deadline, "it does not execute {name}");
            std::thread::sleep(Duration::from_millis(1));
        }
        self
    }

    /// An ordinary user's.
    fn ordinary() -> Self {
        Self::start(product::as_user("sleep"))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `discnice` with these words, by way of another program.
fn by_way_of(way: &[&str], words: &[&str]) -> Outcome {
    let program = product::program();
    let (first, others) = way.split_first().expect("a program");
    run(product::as_user(first).args(others).arg(program).args(words))
}

/// One line that says why, status 125.
fn assert_refused(outcome: &Outcome, why: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert!(complaint.starts_with("discnice: ") && complaint.lines().count() == 1, "{outcome:?}");
    assert!(complaint.contains(why), "{outcome:?}");
}

/// Asserts that the class of that name has no members, or was never made.
fn assert_unchanged(class: &Class) {
    let mut show = product::discnice(["class", "show", class.name(), "--json"]);
    let shown = run(&mut show);
    assert!(shown.status != Some(0) || shown.text().contains("\"members\": []"), "{shown:?}");
}

fn attach<'a>(class: &'a Class, id: &'a str) -> [&'a str; 7] {
    ["attach", "--background", "--class", class.name(), "--disk", "1M", id]
}

#[test]
fn another_users_process_is_refused() {
    if !product::is_root() {
        skip!("needs two users");
    }
    let (sleeper, class) = (Sleeper::start(Command::new("sleep")), Class::new("1M"));
    let outcome = run(&mut product::discnice(attach(&class, &sleeper.id())));
    assert_refused(&outcome, "another user's");
    assert_unchanged(&class);
}

#[test]
fn what_gdb_traces_is_refused() {
    let sleeper = Sleeper::ordinary();
    let mut gdb = product::as_user("gdb");
    gdb.args(["-nx", "-q", "-p", &sleeper.id()]).stdin(Stdio::piped());
    let Ok(gdb) = gdb.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        skip!("no gdb");
    };
    let gdb = Sleeper(gdb);
    let status = format!("/proc/{}/status", sleeper.id());
    let is_traced = || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        text.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_traced() {
        if Instant::now() > deadline {
            skip!("gdb does not trace here");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let class = Class::new("1M");
    assert_refused(&run(&mut product::discnice(attach(&class, &sleeper.id()))), "being traced");
    assert_unchanged(&class);
    drop(gdb);
}

#[test]
fn without_descriptors_it_says_so_or_does_it() {
    let sleeper = Sleeper::ordinary();
    // With three the loader cannot even open libc.
    for most in [4, 5, 6, 8, 12, 16, 24] {
        let (class, limit) = (Class::new("1M"), format!("--nofile={most}"));
        let outcome = by_way_of(&["prlimit", &limit], &attach(&class, &sleeper.id()));
        if outcome.status == Some(0) {
            let let_go = run(&mut product::discnice(["detach", &sleeper.id()]));
            assert_eq!(let_go.status, Some(0), "{most}: {let_go:?}");
        } else {
            assert_refused(&outcome, "");
            assert!(!outcome.complaint().contains("no process"), "{most}: {outcome:?}");
        }
        assert_unchanged(&class);
    }
}

#[test]
fn without_descriptors_a_static_program_runs_all_the_same() {
    let folder = product::folder();
    let Some(program) = static_copier(folder.path()) else { skip!("no static libc") };
    for most in [4, 5, 6, 8, 12, 16, 24, 64] {
        let limit = format!("--nofile={most}");
        let path = program.to_str().expect("text");
        // One that cannot do with so few fails as it does without us.
        let bare = run(product::as_user("prlimit").args([&limit, path, "/etc/passwd"]));
        let words = ["run", "--disk", "1M", "--", path, "/etc/passwd"];
        let held = by_way_of(&["prlimit", &limit], &words);
        assert_eq!((held.status, held.signal), (bare.status, bare.signal), "{most}: {held:?}");
        assert!(
            held.complaint().lines().count() <= 1 && held.output == bare.output,
            "{most}: {held:?}"
        );
    }
}

fn static_copier(folder: &Path) -> Option<PathBuf> {
    Compiler::new(folder)?.compile_with("copier.c", &["-static"]).ok()
}

#[test]
fn without_processes_nothing_is_attached() {
    let (sleeper, class) = (Sleeper::ordinary(), Class::new("1M"));
    // A user without a running daemon: nothing has to be started.
    let alone = product::folder();
    let runtime = format!("XDG_RUNTIME_DIR={}", alone.path().join("run").display());
    run(product::as_user("mkdir").args(["-m", "700"]).arg(alone.path().join("run"))).succeeded();
    let way = ["env", &runtime, "prlimit", "--nproc=1"];
    assert_refused(&by_way_of(&way, &attach(&class, &sleeper.id())), "no daemon");
    assert_unchanged(&class);
    // A command of an ordinary kind needs no other process.
    let outcome = by_way_of(&way, &["run", "--class", class.name(), "--disk", "1M", "--", "true"]);
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.complaint().lines().count() <= 1, "{outcome:?}");
}

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
    let is_told = || {
        let shown = class.show();
        shown["members"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["misses"] == "--meta-ops"))
    };
    within(Duration::from_secs(5), "that it is told of", is_told);
    let status = run(&mut product::discnice(["status"])).text();
    assert!(status.contains("NOT LIMITED: --meta-ops needs the library in it"), "{status}");
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
    std::thread::sleep(Duration::from_millis(1500));
    let shown = class.show();
    assert!(shown["by_mechanism"]["signals"].as_u64() > Some(0), "{shown:#}");
    let members = shown["members"].as_array().expect("members");
    assert!(members.iter().any(|member| member["mechanism"] == "signals"), "{shown:#}");
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
                by_way_of(&way, &["run", "--class", class.name(), "--disk", "256K", "true"]);
            }
            left
        });
        assert!(left, "it was never left stopped");
        let id = writer.id();
        let words = if command == "detach" { vec![command, &id] } else { vec![command] };
        by_way_of(&way[..2], &words).succeeded();
        within(Duration::from_secs(2), command, || !stands(&writer));
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

#[test]
fn a_number_that_is_used_again_is_another_process() {
    if !product::is_root() {
        skip!("only the superuser chooses process ids");
    }
    let (first, class) = (Sleeper::ordinary(), Class::new("1M"));
    let id = first.0.id();
    run(&mut product::discnice(attach(&class, &first.id()))).succeeded();
    drop(first);
    let again = (0..200).find_map(|_| {
        fs::write("/proc/sys/kernel/ns_last_pid", (id - 1).to_string()).ok()?;
        Some(Sleeper::ordinary()).filter(|sleeper| sleeper.0.id() == id)
    });
    let Some(again) = again else {
        skip!("others were born meanwhile, or the number cannot be chosen")
    };
    std::thread::sleep(Duration::from_millis(300));
    assert_unchanged(&class);
    assert_refused(&run(&mut product::discnice(["detach", &again.id()])), "not attached");
    let other = Class::new("1M");
    run(&mut product::discnice(attach(&other, &again.id()))).succeeded();
    run(&mut product::discnice(["detach", &again.id()])).succeeded();
}
