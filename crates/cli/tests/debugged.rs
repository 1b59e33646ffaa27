//! A process that is held from outside can be traced by a debugger: the holder makes way, and holds again
//! afterwards.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_requirements::skip;

/// Writes past the cache, without end, in pieces of 64 KiB.
const WRITER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    int file = open(words[1], O_WRONLY | O_CREAT | O_DIRECT, 0600);
    char *piece = aligned_alloc(4096, 65536);
    for (long at = 0; file >= 0 && pwrite(file, piece, 65536, at % 64 * 65536) == 65536; at++) {}
    return 1;
}
"#;
/// Traces its argument, some milliseconds after its start as debuggers do.
const TRACER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int process = atoi(words[1]);
    usleep(3000);
    if (ptrace(PTRACE_ATTACH, process, 0, 0)) return 1;
    waitpid(process, 0, __WALL);
    if (ptrace(PTRACE_DETACH, process, 0, 0)) return 2;
    return puts("traced") < 0;
}
"#;
const LIMIT: u64 = 1 << 20;
const TIMES: usize = 10;
/// On a machine with much to do the holder may hear of a debugger too late. Without making way one of ten succeeds.
const AT_LEAST: usize = 7;

fn compile(folder: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let (text, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&text, source).unwrap();
    let compiled = Command::new("gcc").arg("-static").arg("-o").arg(&program).arg(&text).status();
    compiled.is_ok_and(|status| status.success()).then_some(program)
}

struct Group(Child);

impl Group {
    fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

fn written(id: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
    let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// The only child of a process, when it has written something.
fn writing_child(parent: u32) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let child = children.ok().and_then(|text| text.trim().parse().ok());
        if let Some(child) = child.filter(|child| written(*child) > 0) {
            return child;
        }
        assert!(Instant::now() < deadline, "nothing is written");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How often a command says so that it traced a process for a moment.
fn traced(command: impl Fn() -> Command, says: &str) -> usize {
    let once = || {
        std::thread::sleep(Duration::from_millis(200));
        let told = command().stdin(Stdio::null()).output().unwrap();
        let text = [told.stdout, told.stderr].concat();
        String::from_utf8_lossy(&text).contains(says)
    };
    (0..TIMES).filter(|_| once()).count()
}

fn command<const N: usize>(words: [&str; N]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

#[test]
fn a_held_process_can_be_traced() {
    if !["gdb", "strace"].iter().all(|tool| command([tool, "--version"]).output().is_ok()) {
        skip!("no gdb, or no strace");
    }
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(writer) = compile(scene.path(), "writer", WRITER) else {
        skip!("no compiler with a static libc");
    };
    let tracer = compile(scene.path(), "tracer", TRACER).unwrap();
    let mut discnice = Command::new(env!("CARGO_BIN_EXE_discnice"));
    discnice.env("XDG_RUNTIME_DIR", scene.path());
    discnice.args(["run", "--disk", "1M", "--", "sh", "-c", "\"$0\" \"$1\"; true"]);
    let job = Group::start(discnice.arg(&writer).arg(scene.path().join("data")));
    let child = writing_child(job.0.id());
    std::thread::sleep(Duration::from_secs(2));
    let id = child.to_string();
    let attach = tracer.to_str().unwrap();
    assert!(traced(|| command([attach, &id]), "traced") >= AT_LEAST, "by a program of any name");
    let strace = ["timeout", "-s", "INT", "0.2", "strace", "-e", "trace=none", "-p", &id];
    assert!(traced(|| command(strace), "attached") >= AT_LEAST, "by strace");
    let gdb = ["gdb", "-nx", "-batch", "-p", &id, "-ex", "detach"];
    assert!(traced(|| command(gdb), "detached") >= AT_LEAST, "by gdb");
    // It is held again. While a debugger traces it, and is waited for, it runs.
    std::thread::sleep(Duration::from_secs(1));
    let before = written(child);
    std::thread::sleep(Duration::from_secs(2));
    let moved = (written(child) - before) as f64 / (2 * LIMIT) as f64;
    assert!(moved < 1.5, "{moved} of the limit");
}
