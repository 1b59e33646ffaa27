//! The library gets only into programs that can load it, and nothing of it shows in any other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::bare::assert_same;
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Outcome, run};
use discnice_tests::{cold, product, skip};

const SIZE: usize = 8 << 20;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(name)
}

/// A guest that another libc's dynamic linker loads, if there is one.
fn musl(folder: &Path, name: &str) -> Option<PathBuf> {
    let to = folder.join("musl");
    let mut compiler = Command::new("musl-gcc");
    compiler.args(["-D_GNU_SOURCE", "-o"]).arg(&to).arg(source(name));
    compiler.output().is_ok_and(|output| output.status.success()).then_some(to)
}

/// Whether ordinary users may make namespaces, by this program.
fn may(words: &[&str]) -> bool {
    Command::new(words[0]).output().is_ok()
        && run(product::as_user(words[0]).args(&words[1..])).status == Some(0)
}

/// Runs a command that reads a cold file, bare and held to 4 MiB/s: it must not be able to tell, and must be held.
fn assert_held(words: &[&str], data: &Path) {
    let bare = run(product::as_user(words[0]).args(&words[1..])).succeeded();
    let class = Class::new("4M");
    // What the programs read to start is paid, and the watcher is there.
    run(&mut class.command(words)).succeeded();
    let (before, _) = class.charged();
    cold::drop_all(data).expect("a file");
    let begun = Instant::now();
    let held = run(&mut class.command(words));
    let took = begun.elapsed();
    assert_same(&bare, &held, &format!("{words:?}"));
    let read = class.charged().0 - before;
    assert!(read >= SIZE as u64 * 98 / 100, "charged {read} of {SIZE}: {words:?}");
    // All sleep for one second when they have read. From outside, one window of read-ahead passes before it is seen.
    assert!(took >= Duration::from_millis(1900), "{words:?} took {took:?}");
}

#[test]
fn programs_of_another_libc_start_and_are_held() {
    let folder = product::folder();
    let Some(reader) = musl(folder.path(), "reader.c") else { skip!("no musl-gcc") };
    let data = folder.path().join("data");
    cold::make(&data, SIZE).expect("a file");
    let (reader, data_name) = (text(&reader), text(&data));
    assert_held(&[reader, data_name, "1"], &data);
    assert_held(&["sh", "-c", "\"$@\"; true", "sh", reader, data_name, "1"], &data);
    assert_held(&["env", "-i", reader, data_name, "1"], &data);
    assert_held(
        &[
            "/usr/bin/python3",
            "-c",
            "import os, sys; os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)",
            reader,
            data_name,
            "1",
        ],
        &data,
    );
}

/// A root directory with nothing in it but musl, a reader, and data.
fn foreign_root(folder: &Path) -> Option<PathBuf> {
    let reader = musl(folder, "reader.c")?;
    let root = folder.join("root");
    for place in ["bin", "lib", "dev"] {
        fs::create_dir_all(root.join(place)).expect("our folder");
    }
    let linker = Path::new("/lib/ld-musl-x86_64.so.1").canonicalize().ok()?;
    product::copy_program(linker, root.join("lib/ld-musl-x86_64.so.1"));
    product::copy_program(reader, root.join("bin/reader"));
    cold::make(&root.join("data"), SIZE).expect("a file");
    Some(root)
}

#[test]
fn programs_in_a_root_of_another_libc_start_and_are_held() {
    let folder = product::folder();
    let Some(root) = foreign_root(folder.path()) else { skip!("no musl-gcc") };
    let within = ["bwrap", "--bind", text(&root), "/", "/bin/reader", "/data", "1"];
    if !may(&within) {
        skip!("no bwrap that ordinary users may use");
    }
    assert_held(&within, &root.join("data"));
}

/// What the superuser runs, bare and under a limit; both must be the same.
fn assert_same_as_root(words: &[&str]) -> Outcome {
    let bare = run(Command::new(words[0]).args(&words[1..]));
    let name = format!("test-entering-{}-{}", std::process::id(), words.len());
    let mut held = Command::new(product::program());
    held.args(["run", "--class", &name, "--disk", "50M", "--"]).args(words);
    let held = run(&mut held);
    let _ = run(Command::new(product::program()).args(["class", "rm", "--force", &name]));
    assert_same(&bare, &held, &format!("{words:?}"));
    bare
}

#[test]
fn chroot_to_a_root_of_another_libc() {
    if !product::is_root() {
        skip!("only the superuser can chroot");
    }
    let folder = product::folder();
    let Some(root) = foreign_root(folder.path()) else { skip!("no musl-gcc") };
    assert_same_as_root(&["chroot", text(&root), "/bin/reader", "/data"]).succeeded();
}

/// Copies a program with all that it loads to the same places below `root`.
fn install(root: &Path, program: &str) {
    let listed = run(Command::new("ldd").arg(program)).text();
    let loaded = listed.split_whitespace().filter(|word| word.starts_with('/'));
    for path in loaded.chain([program]) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("our folder");
        product::copy_program(path, to);
    }
}

#[test]
fn chroot_to_a_root_without_the_library_says_nothing() {
    if !product::is_root() {
        skip!("only the superuser can chroot");
    }
    let folder = product::folder();
    let root = folder.path().join("root");
    for program in ["/bin/sh", "/bin/cat", "/bin/true"] {
        install(&root, program);
    }
    let script = "cat /bin/true | cat > /copy; cat /bin/true > /dev/null; for i in 1 2 3; do /bin/true; done";
    fs::create_dir(root.join("dev")).expect("our folder");
    let bare = assert_same_as_root(&["chroot", text(&root), "/bin/sh", "-c", script]).succeeded();
    assert!(bare.errors.is_empty(), "{bare:?}");
}

/// The folders in which the library may lie that programs are given.
fn hidden_places() -> Vec<String> {
    let library = product::program();
    let beside = library.parent().expect("a folder").to_owned();
    vec![text(&beside).to_owned(), "/tmp".to_owned(), "/run".to_owned()]
}

#[test]
fn programs_from_which_the_library_is_hidden_run_and_are_held() {
    let folder = product::folder();
    let data = folder.path().join("data");
    cold::make(&data, SIZE).expect("a file");
    let hide: String = hidden_places()
        .iter()
        .map(|place| format!("mount -t tmpfs none {place} || exit 9; "))
        .collect();
    let script = format!("{hide} cat {} | wc -c; sleep 1", text(&data));
    let words = ["unshare", "-Urm", "/bin/sh", "-c", &script];
    if !may(&words) {
        skip!("no namespaces for ordinary users here");
    }
    assert_held(&words, &data);
    let mut words = vec!["bwrap", "--dev-bind", "/", "/"];
    let places = hidden_places();
    for place in &places {
        words.extend(["--tmpfs", place]);
    }
    let script = format!("cat {} | wc -c; sleep 1", text(&data));
    words.extend(["/bin/sh", "-c", &script]);
    if !may(&words) {
        skip!("no bwrap that ordinary users may use");
    }
    assert_held(&words, &data);
}

/// Programs that the library cannot enter and that print their environment.
fn environments(folder: &Path) -> Vec<PathBuf> {
    let compiler = Compiler::new(folder).expect("asked before");
    let mut found = Vec::new();
    for (name, options) in [("static", &["-static"][..]), ("short", &["-m32"])] {
        if let Ok(made) = compiler.compile_with("environment.c", options) {
            let to = folder.join(name);
            fs::rename(made, &to).expect("our folder");
            found.push(to);
        }
    }
    found.extend(musl(folder, "environment.c"));
    let (go, to) = (folder.join("environment.go"), folder.join("go"));
    let text = "package main\n\nimport (\"fmt\"; \"os\")\n\nfunc main() { for _, one := range os.Environ() { fmt.Println(one) } }\n";
    fs::write(&go, text).expect("our folder");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&to).arg(&go).env("CGO_ENABLED", "0");
    build.env("GOCACHE", folder.join("cache"));
    if build.output().is_ok_and(|output| output.status.success()) {
        found.push(to);
    }
    found
}

#[test]
fn programs_that_the_library_cannot_enter_find_nothing_of_it() {
    let folder = product::folder();
    if Compiler::new(folder.path()).is_none() {
        skip!("no compiler");
    }
    let programs = environments(folder.path());
    if programs.is_empty() {
        skip!("no compiler for any of them");
    }
    let python =
        "import os, sys; os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)";
    for program in programs {
        let program = text(&program);
        for words in [
            &[program][..],
            &["sh", "-c", "\"$0\"; true", program],
            &["sh", "-c", "sh -c \"$0; $0; true\"; true", program],
            &["env", "-i", "A=b", program],
            &["env", "A=b", program],
            &["env", "LD_PRELOAD=libc.so.6", program],
            &["/usr/bin/python3", "-c", python, program],
            &[
                "/usr/bin/python3",
                "-c",
                "import subprocess, sys; subprocess.run(sys.argv[1:])",
                program,
            ],
            &[
                "/usr/bin/python3",
                "-c",
                "import os, sys; os.system(sys.argv[1] + '; true')",
                program,
            ],
            &["/usr/bin/perl", "-e", "exec {$ARGV[0]} @ARGV", program],
        ] {
            let bare = run(product::as_user(words[0]).args(&words[1..]).env("LC_ALL", "C"));
            let class = Class::new("50M");
            let mut command = class.command(words);
            let held = run(command.env("LC_ALL", "C"));
            assert_same(&bare, &held, &format!("{words:?}"));
        }
    }
}

#[test]
fn ldd_lists_what_it_lists_bare() {
    for script in [
        "ldd /bin/ls | sed 's/ (0x.*//'",
        "LD_TRACE_LOADED_OBJECTS=1 /bin/ls | sed 's/ (0x.*//'",
        "LD_TRACE_LOADED_OBJECTS=1 env ls | sed 's/ (0x.*//'",
        "/lib64/ld-linux-x86-64.so.2 --list /bin/ls | sed 's/ (0x.*//'",
    ] {
        let words = ["bash", "-c", script];
        let bare = run(product::as_user("bash").args(&words[1..])).succeeded();
        assert!(bare.text().contains("libc.so.6"), "{bare:?}");
        let class = Class::new("50M");
        assert_same(&bare, &run(&mut class.command(words)), script);
    }
}

/// Whether ordinary users are told of births: since Linux 6.6, where processes have the system's own numbers.
fn births_are_told() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc");
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    let new = (numbers.next(), numbers.next()) >= (Some(6), Some(6));
    let space = fs::read_link("/proc/self/ns/pid").expect("/proc");
    // PROC_PID_INIT_INO, include/linux/proc_ns.h
    new && space == Path::new("pid:[4026531836]")
}

/// A daemon that reads after its parent has ended is held, whether it executes another program or
/// not.
#[test]
fn daemons_without_the_library_are_held() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let Ok(daemon) = compiler.compile_with("daemon.c", &["-static"]) else {
        skip!("no static libc")
    };
    // Much more than passes between two looks from outside, 10 ms apart, on the fastest disk: one here read 32 MiB in 13 ms.
    const SIZE: usize = 128 << 20;
    let all = ["", "exec", "clean"];
    let hold = |how: &str| {
        let place = product::folder();
        let data = place.path().join("data");
        cold::make(&data, SIZE).expect("a file");
        // Not only once: most are found even by luck.
        for turn in 0..5 {
            let report = place.path().join(format!("report-{turn}"));
            let class = Class::new("64M");
            let script =
                "\"$@\"; for i in 1 2 3 4 5; do sleep 1; [ -s \"$3\" ] && exit; done; exit 1";
            let mut command = class.command(["sh", "-c", script, "sh", text(&daemon)]);
            command.args([text(&data), text(&report)]);
            if !how.is_empty() {
                command.arg(how);
            }
            cold::drop_all(&data).expect("a file");
            run(&mut command).succeeded();
            let said = fs::read_to_string(&report).expect("its report");
            let numbers: Vec<u64> =
                said.split_whitespace().map(|n| n.parse().expect("a number")).collect();
            let (read, _) = class.charged();
            assert_eq!(numbers[0], SIZE as u64, "{said}");
            assert!(
                read >= SIZE as u64 * 98 / 100,
                "charged {read}, {how} {turn}: {said} {:#}",
                class.show()
            );
            assert!(numbers[1] >= 900, "{how} {turn}: took {} ms", numbers[1]);
        }
    };
    thread::scope(|scope| {
        for how in &all[..if births_are_told() { 3 } else { 2 }] {
            scope.spawn(|| hold(how));
        }
    });
}

#[test]
fn doctor_says_what_run_does() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let mut programs = vec![(PathBuf::from("/bin/ls"), "by the library in it")];
    for (name, options) in [("static", "-static"), ("short", "-m32")] {
        if let Ok(made) = compiler.compile_with("environment.c", &[options]) {
            let to = folder.path().join(name);
            fs::rename(made, &to).expect("our folder");
            programs.push((to, "by a supervisor"));
        }
    }
    programs.extend(musl(folder.path(), "environment.c").map(|made| (made, "by a supervisor")));
    for (program, how) in programs {
        let said = run(&mut product::discnice(["doctor", text(&program)])).text();
        let line = said.lines().find(|line| line.contains(" program ")).expect("a line");
        assert!(line.starts_with("ok "), "{line}");
        assert!(line.contains(how), "{line}");
        let class = Class::new("50M");
        let held = run(&mut class.command([text(&program)]));
        assert_eq!((held.status, held.complaint().as_str()), (Some(0), ""), "{held:?}");
    }
    let setuid = Path::new("/bin/su");
    if fs::metadata(setuid).is_ok_and(|meta| meta.permissions().mode() & 0o4000 != 0) {
        let said = run(&mut product::discnice(["doctor", text(setuid)])).text();
        let line = said.lines().find(|line| line.contains(" program ")).expect("a line");
        assert!(line.starts_with("BAD ") && line.contains("cannot be limited"), "{line}");
    }
}
