//! Programs that cannot load the library, as they have another libc or none, or as it is not in their root directory, start
//! as they do bare and are held all the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::bare::assert_same;
use discnice_tests::class::Class;
use discnice_tests::guest::{Compiler, musl};
use discnice_tests::process::{Outcome, run};
use discnice_tests::{cold, product, skip};

const SIZE: usize = 8 << 20;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
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
    let spawn =
        "import os, sys; os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)";
    let starters: [&[&str]; 4] = [
        &[],
        &["sh", "-c", "\"$@\"; true", "sh"],
        &["env", "-i"],
        &["/usr/bin/python3", "-c", spawn],
    ];
    for starter in starters {
        assert_held(&[starter, &[text(&reader), text(&data), "1", "1000"]].concat(), &data);
    }
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
