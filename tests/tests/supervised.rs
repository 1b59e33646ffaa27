//! Programs that our library cannot enter are held all the same, and cannot tell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{run, send, with_in_environment};
use discnice_tests::{cold, product, skip};

/// A guest without a dynamic linker, if the machine can make one.
fn static_guest(folder: &Path, source: &str) -> Option<PathBuf> {
    Compiler::new(folder)?.compile_with(source, &["-static"]).ok()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

//= discnice/5.5-malicious
#[test]
fn a_static_program_is_held_to_its_rate_and_charged_exactly() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    let size = 8 << 20;
    cold::make(&data, size).expect("a file");
    let bare = run(product::as_user(&reader).arg(&data));
    let class = Class::new("4M");
    // What DiscNice's own program reads to start is paid here.
    run(&mut class.command([text(&reader), "/etc/passwd"])).succeeded();
    let (before, _) = class.charged();
    cold::drop_all(&data).expect("a file");
    let started = Instant::now();
    let held = run(&mut class.command([text(&reader), text(&data)]));
    let elapsed = started.elapsed();
    assert_eq!(bare, held);
    assert!(elapsed >= Duration::from_millis(1900), "8 MiB at 4 MiB/s took {elapsed:?}");
    let read = class.charged().0 - before;
    let expected = size as u64..size as u64 + (1 << 20);
    assert!(expected.contains(&read), "charged {read} of {size}, and what loading costs");
}

/// The kernel shows the name, or its first 15 bytes, as it is.
#[test]
fn a_program_with_a_name_that_is_no_text_is_held() {
    use std::os::unix::ffi::OsStrExt;
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    cold::make(&data, 8 << 20).expect("a file");
    for name in [&b"caf\xe9"[..], "überprüfungsprogramm".as_bytes()] {
        let named = folder.path().join(std::ffi::OsStr::from_bytes(name));
        product::copy_program(&reader, &named);
        let class = Class::new("8M");
        cold::drop_all(&data).expect("a file");
        let started = Instant::now();
        run(class.run().arg(&named).arg(&data)).succeeded();
        let elapsed = started.elapsed();
        assert!(elapsed >= Duration::from_millis(900), "8 MiB at 8 MiB/s took {elapsed:?}");
    }
}

/// Daemons start programs with SIGCHLD ignored, or blocked, and exec(2) changes neither.
#[test]
fn a_program_is_held_that_ignores_the_end_of_children_and_finds_none() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let class = Class::new("50M");
    for option in ["--ignore-signal=CHLD", "--block-signal=CHLD"] {
        let mut command = product::as_user("env");
        command.arg(option).arg(product::program());
        command.args(["run", "--strict", "--class", class.name(), "--disk", "50M", "--"]);
        let mut child = command
            .arg(&reader)
            .args(["/etc/passwd", "5"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = [0; 4];
        let read = std::io::Read::read(child.stdout.as_mut().expect("piped"), &mut line);
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
        send(child.id().cast_signed(), libc::SIGKILL);
        child.wait().expect("our child");
        assert_eq!(read.ok(), Some(4), "{option}: it was refused");
        let status = status.expect("it ran");
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        assert_eq!(pending.map(str::trim), Some("0000000000000000"), "{option}");
    }
}

/// In a PID namespace without a /proc of its own, numbers there mean other processes.
#[test]
fn where_proc_shows_other_processes_that_nothing_holds_is_told() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let class = Class::new("50M");
    for mechanism in ["auto", "freeze"] {
        for (strict, status) in [(false, 0), (true, 125)] {
            let mut command = product::as_user("unshare");
            command.arg("-Urpf").arg(product::program()).args(["run", "--mechanism", mechanism]);
            command.args(strict.then_some("--strict"));
            command.args(["--class", class.name(), "--disk", "50M", "--"]);
            let ran = run(command.arg(&reader).arg("/etc/passwd"));
            if ran.complaint().contains("unshare failed") {
                skip!("ordinary users get no namespaces for users and processes");
            }
            assert_eq!(ran.status, Some(status), "{mechanism}: {ran:?}");
            assert!(ran.complaint().contains("/proc does not show"), "{mechanism}: {ran:?}");
        }
    }
}

/// The number of a killed process, which no watcher saw end, is given to a child of a static shell.
#[test]
fn a_later_process_with_a_members_number_is_held() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    cold::make(&data, 8 << 20).expect("a file");
    let class = Class::new("8M");
    let limited = |mechanism: &str, command: &str| {
        let program = product::program();
        let options = format!("run --class {} --disk 8M --mechanism {mechanism} --", class.name());
        format!("{} {options} {command}", text(&program))
    };
    let script = format!(
        "{} & member=$!; sleep 1; kill -9 $member; wait $member; before=$((member - 1)); export before member; \
         {} 'echo $before > /proc/sys/kernel/ns_last_pid; \"$0\" \"$1\" & test $! = $member && echo same; wait' \"$@\"",
        limited("preload", "sleep 100"),
        limited("seccomp", "busybox sh -c"),
    );
    let mut shell = product::as_user("unshare");
    shell.args(["-Urpf", "--mount-proc", "--kill-child", "sh", "-c", &script, "sh"]);
    let started = Instant::now();
    let ran = run(shell.arg(&reader).arg(&data));
    if !ran.text().contains("same") {
        skip!("no busybox, or the numbers of processes cannot be chosen: {ran:?}");
    }
    let elapsed = started.elapsed();
    assert!(
        elapsed >= Duration::from_millis(1900),
        "8 MiB at 8 MiB/s took {elapsed:?}, a second of it asleep"
    );
}

#[test]
fn it_is_listed_as_supervised() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let class = Class::new("50M");
    let mut command = class.command([text(&reader), "/etc/passwd", "5"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut line).expect("output");
    let shown = class.show();
    send(child.id().cast_signed(), libc::SIGKILL);
    child.wait().expect("our child");
    let member = &shown["members"][0];
    assert_eq!(member["mechanism"], "seccomp", "{shown:#}");
    assert!(member["escape"].is_null(), "{shown:#}");
}

/// Runs a program on a cold file with and without, and returns how long it was held to 8 MiB/s.
fn assert_same_on(program: &Path, data: &Path, mechanism: &str) -> Duration {
    let bare = run(product::as_user(program).arg(data));
    assert_eq!(bare.status, Some(0), "{bare:?}");
    cold::drop_all(data).expect("a file");
    let class = Class::new("8M");
    let started = Instant::now();
    let held = run(class.run_by(mechanism).arg(program).arg(data));
    assert_eq!(bare, held, "{mechanism}");
    let (size, (read, _)) = (fs::metadata(data).expect("a file").len(), class.charged());
    assert!(read as f64 >= 0.98 * size as f64, "charged {read} of {size}: {}", program.display());
    let by = class.show()["by_mechanism"][mechanism].as_u64().unwrap_or(read);
    assert!(
        by as f64 >= 0.98 * size as f64,
        "{by} of {size} by {mechanism}: {}",
        program.display()
    );
    started.elapsed()
}

#[test]
fn a_timer_neither_stops_nor_frees_a_program() {
    let folder = product::folder();
    let Some(timer) = static_guest(folder.path(), "timer.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    cold::make(&data, 8 << 20).expect("a file");
    let elapsed = assert_same_on(&timer, &data, "auto");
    assert!(elapsed >= Duration::from_millis(900), "8 MiB at 8 MiB/s took {elapsed:?}");
}

/// Linux closes a descriptor and says so whatever signals come; what fails is left open by programs, which do not repeat it.
#[test]
fn no_signal_interrupts_close() {
    let folder = product::folder();
    let Some(closes) = static_guest(folder.path(), "closes.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    let class = Class::new("50M");
    let held = run(class.run_by("auto").arg(&closes).arg(&data));
    assert_eq!(held.text(), "0 failed, 0 left open\n", "{held:?}");
}

#[test]
fn programs_of_other_libraries_and_languages_read_the_same() {
    let folder = product::folder();
    let data = folder.path().join("data");
    cold::make(&data, 4 << 20).expect("a file");
    let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(name);
    let made = |name: &str, command: &mut Command| {
        let made = command.output().is_ok_and(|output| output.status.success());
        made.then(|| folder.path().join(name))
    };
    let musl = folder.path().join("musl");
    let musl = made(
        "musl",
        Command::new("musl-gcc").args(["-static", "-o"]).arg(&musl).arg(source("copier.c")),
    );
    let go = folder.path().join("go");
    let go = made(
        "go",
        Command::new("go")
            .args(["build", "-o"])
            .arg(&go)
            .arg(source("goroutines.go"))
            .env("CGO_ENABLED", "0")
            .env("GOCACHE", folder.path().join("cache")),
    );
    for program in musl.iter().chain(&go) {
        assert_same_on(program, &data, "auto");
        assert_same_on(program, &data, "seccomp");
    }
    if musl.is_none() || go.is_none() {
        skip!("musl-gcc or go is missing");
    }
}

#[test]
fn a_whole_tree_is_supervised_when_asked_for() {
    let folder = product::folder();
    let data = folder.path().join("data");
    cold::make(&data, 4 << 20).expect("a file");
    let class = Class::new("4M");
    let script =
        format!("env -i cat {0} | wc -c; env | grep -c -e LD_PRELOAD -e DISCNICE", text(&data));
    let started = Instant::now();
    let held = run(class.run_by("seccomp").args(["sh", "-c", &script]));
    assert_eq!(held.text(), format!("{}\n0\n", 4 << 20), "{held:?}");
    assert!(started.elapsed() >= Duration::from_millis(900), "it took {:?}", started.elapsed());
    assert!(class.charged().0 >= 4 << 20, "{:#}", class.show());
}

/// A held call waits in the supervisor, which goes on receiving meanwhile.
#[test]
fn others_go_on_while_one_is_held() {
    let folder = product::folder();
    let data = folder.path().join("data");
    cold::make(&data, 8 << 20).expect("a file");
    let class = Class::new("1M");
    // Each turn of the loop writes, and each line is read.
    let others = "seq 20000 | while read -r line; do echo $line; done | wc -l";
    let script =
        format!("cat {} > /dev/null & sleep 1; {others}; kill $! && echo held; wait", text(&data));
    let outcome = run(class.run_by("seccomp").args(["sh", "-c", &script]));
    assert_eq!(outcome.text(), "20000\nheld\n", "{outcome:?}");
}

#[test]
fn io_uring_does_not_exist_where_nothing_may_escape() {
    let python = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); \
                  print(libc.syscall(425, 1, 0), ctypes.get_errno())";
    if run(product::as_user("/usr/bin/python3").arg("--version")).status != Some(0) {
        skip!("no /usr/bin/python3");
    }
    let class = Class::new("50M");
    let held = run(class.run_by("seccomp").args(["/usr/bin/python3", "-c", python]));
    assert_eq!(held.text(), format!("-1 {}\n", libc::ENOSYS), "{held:?}");
}

#[test]
fn there_can_be_one_supervisor_only() {
    let class = Class::new("50M");
    let inner = Class::new("40M");
    let mut nested = class.run_by("seccomp");
    let program = product::program();
    nested.arg(&program).args(["run", "--mechanism", "seccomp", "--class", inner.name()]);
    let held = run(nested.args(["--disk", "40M", "--", "echo", "done"]));
    assert_eq!((held.text().as_str(), held.status), ("done\n", Some(0)), "{held:?}");
    let complaint = held.complaint();
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with("discnice: limited from inside only: echo: "), "{complaint}");
}

#[test]
fn a_static_program_below_a_supervisor_that_is_not_ours_is_held_from_outside() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let listened = Compiler::new(folder.path()).expect("as before").compile("listened.c");
    let data = folder.path().join("data");
    let size = 64 << 20;
    cold::make(&data, size).expect("a file");
    let class = Class::new("32M");
    let mut command = product::as_user(&listened);
    command.arg(product::program()).args(["run", "--strict", "--class", class.name()]);
    let started = Instant::now();
    let held = run(command.args(["--disk", "32M", "--", text(&reader), text(&data)]));
    let elapsed = started.elapsed();
    let whole = (format!("read {size}\n"), Some(0), String::new());
    assert_eq!((held.text(), held.status, held.complaint()), whole, "{held:?}");
    // It is held after the fact, and has ended before it pays for the last of it.
    assert!(elapsed >= Duration::from_millis(1000), "64 MiB at 32 MiB/s took {elapsed:?}");
    let charged = class.charged().0;
    assert!(charged >= size as u64 / 10 * 9, "charged {charged} of {size}");
}

/// The processes that supervise what was started with a variable in its environment.
fn supervisors(mark: &str) -> BTreeSet<i32> {
    let is_one = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| stat.contains("(discnice-notify)"))
    };
    with_in_environment(mark).into_iter().filter(is_one).map(u32::cast_signed).collect()
}

#[test]
fn killed_supervisors_are_replaced_and_no_call_fails() {
    const KILLS: usize = 200;
    let folder = product::folder();
    let Some(copier) = static_guest(folder.path(), "copier.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    cold::make(&data, 1 << 20).expect("a file");
    let bare = run(product::as_user(&copier).arg(&data)).text();
    let class = Class::new("100M");
    let mark = ("DISCNICE_TEST_MARK", class.name());
    let script = format!("while {} {}; do :; done", text(&copier), text(&data));
    let mut command = class.run_by("seccomp");
    command.args(["sh", "-c", &script]).env(mark.0, mark.1).stdout(Stdio::piped());
    let mark = format!("{}={}", mark.0, mark.1);
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("piped");
    let lines = std::thread::spawn(move || {
        std::io::Read::bytes(output).map_while(Result::ok).collect::<Vec<u8>>()
    });
    let (mut killed, mut victim) = (0, None);
    let deadline = Instant::now() + Duration::from_secs(120);
    while killed < KILLS && Instant::now() < deadline {
        // One of the two, at any moment of its life, once the one before has ended: on a busy machine that takes its time,
        // and the next one, too. Of both at a time none would be left.
        let found = supervisors(&mark);
        if found.len() == 2 && victim.is_none_or(|last| !found.contains(&last)) {
            victim = found.iter().nth(killed % 2).copied();
            victim.into_iter().for_each(|victim| send(victim, libc::SIGKILL));
            killed += 1;
        }
        std::thread::sleep(Duration::from_millis(20 + (killed as u64 * 7919) % 60));
    }
    let ended = child.try_wait().expect("our child");
    discnice_tests::process::kill_group(child.id());
    child.wait().expect("our child");
    let output = String::from_utf8(lines.join().expect("a thread")).expect("text");
    assert_eq!(ended, None, "the program goes on after {killed} kills: {output}");
    let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let runs = whole.lines().filter(|line| **line == *bare.trim_end()).count();
    assert_eq!(runs, whole.lines().count(), "each run copied the same: {output}");
    assert!(killed == KILLS && runs > 0, "{killed} kills, {runs} runs");
}

/// Old versions of containers refuse close_range(2).
#[test]
fn supervisors_keep_no_descriptor_and_are_replaced_where_close_range_is_refused() {
    const KILLS: usize = 6;
    let folder = product::folder();
    let Some(copier) = static_guest(folder.path(), "copier.c") else { skip!("no static libc") };
    let refused = Compiler::new(folder.path()).expect("as before").compile("refused.c");
    // Not the one that the copier reads: supervisors borrow that for a moment.
    let (data, inherited) = (folder.path().join("data"), folder.path().join("inherited"));
    cold::make(&data, 1 << 20).expect("a file");
    fs::write(&inherited, "").expect("a file");
    let class = Class::new("100M");
    let script = format!("while {} {}; do :; done", text(&copier), text(&data));
    let mut command = product::as_user("sh");
    command.args(["-c", "exec \"$@\" 9< \"$0\"", text(&inherited), text(&refused)]);
    command.args([&libc::SYS_close_range.to_string(), &libc::EPERM.to_string()]);
    command.arg(product::program()).args(["run", "--strict", "--mechanism", "seccomp"]);
    command.args(["--class", class.name(), "--disk", "100M", "--", "sh", "-c", &script]);
    command.env("DISCNICE_TEST_MARK", class.name()).stdout(Stdio::null());
    let mark = format!("DISCNICE_TEST_MARK={}", class.name());
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .expect("it starts");
    let (mut killed, mut kept) = (BTreeSet::new(), Vec::new());
    let deadline = Instant::now() + Duration::from_secs(20);
    while killed.len() < KILLS && Instant::now() < deadline {
        let found = supervisors(&mark);
        if found.len() == 2 && found.is_disjoint(&killed) {
            for id in &found {
                let links = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
                kept.extend(links.filter_map(|link| fs::read_link(link.path()).ok()));
            }
            let victim = *found.first().expect("one of two");
            send(victim, libc::SIGKILL);
            killed.insert(victim);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = child.try_wait().expect("our child");
    discnice_tests::process::kill_group(child.id());
    child.wait().expect("our child");
    assert_eq!((killed.len(), ended), (KILLS, None), "each is replaced");
    assert!(!kept.contains(&inherited), "{kept:?}");
}
