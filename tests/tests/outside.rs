//! Programs that the library cannot enter: they run as they do bare, with one warning or held from
//! outside, and the class shows them while they run.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use discnice_tests::bare::assert_same;
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, Outcome, run};
use discnice_tests::{cold, product, skip};

/// The line that a command gets that cannot be limited.
fn assert_one_warning(bare: &Outcome, held: &Outcome) {
    assert_eq!((&bare.output, bare.status), (&held.output, held.status), "{held:?}");
    let complaint = held.complaint();
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with("discnice: not limited: "), "{complaint}");
}

#[test]
fn setuid_programs_run_with_one_warning() {
    for words in
        [["/bin/su", "--version"], ["/usr/bin/passwd", "--help"], ["/usr/bin/mount", "--version"]]
    {
        let setuid = |meta: fs::Metadata| meta.permissions().mode() & 0o4000 != 0;
        if !fs::metadata(words[0]).is_ok_and(setuid) {
            skip!("{} is not there, or not setuid", words[0]);
        }
        let bare = run(product::as_user(words[0]).arg(words[1]));
        let class = Class::new("50M");
        assert_one_warning(&bare, &run(&mut class.command(words)));
        // As a child of a regulated shell: the dynamic linker must not complain.
        let inner = ["sh", "-c", &words.join(" ")];
        let bare = run(product::as_user("sh").args(&inner[1..]));
        let held = run(&mut class.command(inner));
        assert_same(&bare, &held, "setuid as a child");
    }
}

#[test]
fn static_programs_are_warned_of_and_shown_while_they_run() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let reader = match compiler.compile_with("reader.c", &["-static"]) {
        Ok(reader) => reader,
        Err(errors) => skip!("no static libc: {errors}"),
    };
    let data = folder.path().join("data");
    cold::make(&data, 100_000).expect("a file");
    let words = [reader.to_str().expect("UTF-8"), data.to_str().expect("UTF-8")];
    let class = Class::new("50M");
    let bare = run(product::as_user(words[0]).arg(words[1]));
    assert_one_warning(&bare, &run(class.run_by("preload").args(words)));

    for prefix in [&["sh", "-c", "\"$@\"; true", "sh"][..], &["env", "-i"]] {
        assert_shown(&[prefix, &words, &["5"]].concat());
    }
}

#[test]
fn static_children_of_posix_spawn_are_shown_while_they_run() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let Ok(reader) = compiler.compile_with("reader.c", &["-static"]) else {
        skip!("no static libc")
    };
    let python = "import os, sys; os.posix_spawn(sys.argv[1], sys.argv[1:], {}); os.wait()";
    let reader = reader.to_str().expect("UTF-8");
    assert_shown(&["/usr/bin/python3", "-c", python, reader, "/etc/passwd", "5"]);
}

//= discnice/5.5-malicious
#[test]
fn static_programs_in_a_numbering_of_their_own_are_held() {
    let apart = ["unshare", "-Urpf"];
    if run(product::as_user(apart[0]).arg(apart[1]).arg("true")).status != Some(0) {
        skip!("no namespaces for ordinary users here");
    }
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let Ok(reader) = compiler.compile_with("reader.c", &["-static"]) else {
        skip!("no static libc")
    };
    let words = [&apart[..], &[reader.to_str().expect("UTF-8"), "/etc/passwd", "5"]].concat();
    // Its number is 1, which here is the system's first process.
    let (shown, _) = shown_while_it_runs("auto", &words, held_from_outside);
    assert!(members(&shown).iter().any(|member| member["mechanism"] == "freeze"), "{shown:#}");
}

/// Runs a command that prints a line and goes on, and looks at its class meanwhile, with and
/// without a watcher that holds from outside what the library cannot enter.
fn assert_shown(words: &[&str]) {
    let (shown, status) = shown_while_it_runs("preload", words, escapes);
    assert!(escapes(&shown), "{words:?}: {shown:#}");
    assert!(status.contains("NOT LIMITED"), "{words:?}: {status}");

    let (shown, status) = shown_while_it_runs("auto", words, held_from_outside);
    assert!(held_from_outside(&shown), "{words:?}: {shown:#}");
    assert!(!status.contains("NOT LIMITED"), "{words:?}: {status}");
}

fn members(class: &serde_json::Value) -> &[serde_json::Value] {
    class["members"].as_array().expect("members")
}

fn escapes(class: &serde_json::Value) -> bool {
    let mut why = members(class).iter().filter_map(|member| member["escape"].as_str());
    why.any(|why| why.contains("statically linked"))
}

fn held_from_outside(class: &serde_json::Value) -> bool {
    members(class).iter().any(|member| member["mechanism"] == "freeze")
        && members(class).iter().all(|member| member["escape"].is_null())
}

/// How long a daemon may take to start and to look, on a machine with much else to do.
const NOTICED: Duration = Duration::from_secs(3);

/// Its class and what `status` says of it, as soon as the class is as awaited, or as they are in the end.
fn shown_while_it_runs(
    mechanism: &str,
    words: &[&str],
    awaited: fn(&serde_json::Value) -> bool,
) -> (serde_json::Value, String) {
    let class = Class::new("50M");
    let mut command = class.run_by(mechanism);
    command.args(words);
    let mut group = Group::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut line = [0; 5];
    std::io::Read::read_exact(group.stdout.as_mut().expect("piped"), &mut line)
        .expect("its output");
    let since = Instant::now();
    let mut shown = class.show();
    while !awaited(&shown) && since.elapsed() < NOTICED {
        std::thread::sleep(Duration::from_millis(50));
        shown = class.show();
    }
    let status = run(&mut product::discnice(["status"])).succeeded().text();
    drop(group);
    // Its own lines: those of other classes are other tests'.
    let mut lines = status.lines().skip_while(|line| !line.starts_with(class.name()));
    let first = lines.next().unwrap_or_default();
    let members = lines.take_while(|line| line.starts_with(' '));
    (shown, std::iter::once(first).chain(members).collect::<Vec<_>>().join("\n"))
}

//= discnice/5.1-children
#[test]
fn ordinary_children_are_listed_once_and_as_limited() {
    let python = "import os; os.posix_spawn('/bin/sleep', ['sleep', '5'], {}); os.wait()";
    let vfork = "import subprocess; subprocess.run(['sleep', '5'])";
    for words in [
        &["bash", "-c", "sleep 5; true"][..],
        &["sh", "-c", "sleep 5; true"],
        &["/usr/bin/python3", "-c", python],
        &["/usr/bin/python3", "-c", vfork],
        &["sh", "-c", "env -i sleep 5; true"],
    ] {
        if !Path::new(words[0]).exists() && words[0].starts_with('/') {
            skip!("no {}", words[0]);
        }
        let class = Class::new("50M");
        let mut command = class.command(words);
        let group = Group::start(&mut command);
        std::thread::sleep(Duration::from_millis(700));
        let shown = class.show();
        drop(group);
        let members = shown["members"].as_array().expect("members");
        let mut processes: Vec<_> = members.iter().map(|member| &member["process"]).collect();
        processes.dedup();
        let names: Vec<_> = members.iter().map(|member| member["name"].as_str()).collect();
        assert_eq!((members.len(), processes.len()), (2, 2), "{words:?}: {shown:#}");
        assert!(names.contains(&Some("sleep")), "{words:?}: {shown:#}");
        assert!(members.iter().all(|member| member["escape"].is_null()), "{words:?}: {shown:#}");
    }
}

#[test]
fn static_system_programs_run() {
    if !Path::new("/sbin/ldconfig").exists() {
        skip!("no /sbin/ldconfig");
    }
    let words = ["/sbin/ldconfig", "--version"];
    let class = Class::new("50M");
    let bare = run(product::as_user(words[0]).arg(words[1]));
    assert_same(&bare, &run(&mut class.command(words)), "supervised");
}

#[test]
fn programs_of_another_word_size_run() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = match compiler.compile_with("reader.c", &["-m32"]) {
        Ok(program) => program,
        Err(_) => skip!("no 32-bit libc to link with (gcc-multilib)"),
    };
    let words = [program.to_str().expect("UTF-8"), "/etc/passwd"];
    let class = Class::new("50M");
    let bare = run(product::as_user(words[0]).arg(words[1])).succeeded();
    assert_one_warning(&bare, &run(class.run_by("preload").args(words)));
    for mechanism in ["auto", "freeze", "seccomp"] {
        assert_same(&bare, &run(class.run_by(mechanism).args(words)), mechanism);
    }
    let words = ["sh", "-c", "\"$@\"; true", "sh", words[0], words[1]];
    assert_same(&bare, &run(&mut class.command(words)), "as a child");
}

/// Writes eight times 3 MB into a file that it has unlinked, and closes it before anything forced
/// it to be written. It ends a little later: of a process that has ended and been waited for, what it had not closed when it
/// was looked at last is charged, as its account is gone.
const PACKS: &str = r#"
import os, sys, time
sys.stdin.readline()
for _ in range(8):
    file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o600)
    os.unlink(sys.argv[1])
    os.write(file, bytes(3_000_000))
    time.sleep(0.2)
    os.close(file)
time.sleep(2)
"#;

#[test]
fn what_is_deleted_unwritten_costs_no_time() {
    let folder = product::folder();
    let mut packing = product::as_user("/usr/bin/python3");
    packing.args(["-c", PACKS]).arg(folder.path().join("pack")).stdin(Stdio::piped());
    let Ok(mut packing) = packing.spawn() else { skip!("no Python") };
    // A process that changes its user hides what it does until it executes a program.
    std::thread::sleep(Duration::from_millis(300));
    let (class, id) = (Class::new("1M"), packing.id().to_string());
    let words = ["attach", "--class", class.name(), "--disk", "1M", "--background", &id];
    run(&mut product::discnice(words)).succeeded();
    let begun = Instant::now();
    writeln!(packing.stdin.take().expect("a pipe")).expect("it reads");
    let ended = packing.wait().expect("it ends");
    let took = begun.elapsed();
    // Less than one of the eight; time is only what a busy machine leaves of it.
    let (_, written) = class.charged();
    assert!(ended.success() && written < 3_000_000, "{written} bytes of what never was written");
    assert!(took < Duration::from_secs(12), "{took:?} of 24 at most");
}

/// Scripts for a static shell: what writes is the grandchild of a process that lives on, and is waited for by its
/// parent, or, as that has ended, by a subreaper.
const GRANDCHILDREN: [&str; 2] = [
    "sh -c 'dd if=/dev/zero of=new bs=1M count=16 status=none; true'; sleep 0.5; true",
    "/usr/bin/python3 -c '
import ctypes, os, subprocess, time
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
write = \"dd if=/dev/zero of=new bs=1M count=16 status=none; sleep 0.2\"
subprocess.run([\"sh\", \"-c\", f\"({write}) &\"])
os.wait()
time.sleep(0.5)'; true",
];

#[test]
fn what_a_grandchild_writes_is_charged_once() {
    for script in GRANDCHILDREN {
        let (folder, class) = (product::folder(), Class::new("100M"));
        let mut command = class.run_by("freeze");
        command.args(["busybox", "sh", "-c", script]).current_dir(folder.path());
        run(&mut command).succeeded();
        let (_, written) = class.charged();
        // The kernel counts a page once that is written again while it is dirty.
        assert!((12 << 20..18 << 20).contains(&written), "{written} of {} by {script}", 16 << 20);
    }
}
