//! What stands in the way of holding from outside: other users, debuggers, used-up limits of the system. One clear line
//! and nothing changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::attaching::{Sleeper, assert_refused, attach, by_way_of};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};

/// Asserts that the class of that name has no members, or was never made.
fn assert_unchanged(class: &Class) {
    let mut show = product::discnice(["class", "show", class.name(), "--json"]);
    let shown = run(&mut show);
    assert!(shown.status != Some(0) || shown.text().contains("\"members\": []"), "{shown:?}");
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
