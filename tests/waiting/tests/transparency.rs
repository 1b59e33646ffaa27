//! Apart from time, a program cannot tell: guests of one concern each print all that they can
//! see, and print the same under every limit as they do bare.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::bare::{LIMITS, Place, assert_same, compare, guest, nothing};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

/// A test of one guest that ends well by itself.
macro_rules! guests {
    ($($(#[doc = $doc:literal])+ $name:ident: $source:literal $arguments:expr, $status:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[test]
            fn $name() {
                let Some(bare) = guest($source, &$arguments, nothing) else {
                    skip!("{} needs a C and a C++ compiler", stringify!($name))
                };
                assert_eq!((bare.status, bare.signal), $status, "the guest itself: {bare:?}");
                assert!(!bare.output.is_empty(), "a silent guest shows nothing");
            }
        )+
    };
}

guests! {
    /// A call that succeeds leaves errno alone.
    errno_is_kept_by_calls_that_succeed: "errno.c" [], (Some(0), None);
    /// EFAULT, from every call that takes a pointer.
    bad_pointers_give_efault: "pointers.c" [], (Some(0), None);
    /// sendfile, copy_file_range and splice move the right offsets by the right amount.
    copies_update_their_offsets: "offsets.c" [], (Some(0), None);
    /// The third argument of open.
    open_passes_its_mode: "modes.c" [], (Some(0), None);
    /// EINTR, SA_RESTART, EAGAIN, short counts, edge-triggered epoll.
    signals_and_nonblocking_descriptors: "signals.c" [], (None, Some(libc::SIGTERM));
    /// O_APPEND, a shared offset, pipes. Of large writes at a shared offset nothing is lost, but they may mix
    /// (docs/limits.md).
    concurrent_writers_do_not_mix: "atomic.c" [], (Some(0), None);
    /// Counts that no call can reach, and buffers that leave the address space.
    counts_beyond_one_call: "counts.c" [], (Some(0), None);
    /// RLIMIT_FSIZE and SIGXFSZ.
    file_size_limits: "limits.c" [], (None, Some(libc::SIGXFSZ));
    /// Nothing inherited or stray, lowest number first, all closed, 0 to 2 replaced.
    descriptors_are_the_programs_own: "descriptors.c" [], (Some(0), None);
    /// fork, vfork, clone, posix_spawn, system, popen.
    every_way_to_start_a_process: "processes.c" [], (Some(42), None);
    /// 16 KiB stacks; cancellation with C cleanup handlers.
    small_stacks_and_cancellation: "threads.c" [], (Some(0), None);
    /// Cancellation and exceptions with C++ destructors.
    destructors_run_on_cancellation: "destructors.cc" [], (Some(0), None);
    /// Handlers that do I/O, that longjmp out of a wait, that have a stack of their own.
    handlers_do_io_and_leave_by_longjmp: "handlers.c" [], (Some(0), None);
    /// mmap, mremap, madvise.
    mappings_are_the_programs_own: "mappings.c" [], (Some(0), None);
    /// The exec family.
    exec_in_all_its_forms: "exec.c" [], (Some(0), None);
}

#[test]
fn programs_with_sanitizers() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    for kind in ["address", "undefined", "thread", "leak"] {
        let option = format!("-fsanitize={kind}");
        let Ok(program) = compiler.compile_with("modes.c", &["-g", &option]) else {
            skip!("no {kind} sanitizer");
        };
        compare(&[program.to_str().expect("UTF-8")], nothing).succeeded();
    }
}

#[test]
fn a_failed_exec_leaves_the_process_limited() {
    const SIZE: u64 = 3 << 20;
    let folder = product::folder();
    cold::make(&folder.path().join("data"), SIZE as usize).expect("a file");
    let script = "import os
for path in ['/nowhere', '/', '/etc/passwd']:
    try: os.execve(path, ['x'], {})
    except OSError as error: print(error.errno)
try: os.execve('/bin/true', ['x' * 300000], {})
except OSError as error: print(error.errno)
with open('data', 'rb') as data: print(len(data.read()))";
    if !Path::new("/usr/bin/python3").exists() {
        skip!("no python3");
    }
    let class = Class::new("2M");
    let mut command = class.command(["/usr/bin/python3", "-c", script]);
    let started = std::time::Instant::now();
    let ended = run(command.current_dir(folder.path())).succeeded();
    assert_eq!(ended.text(), format!("2\n13\n13\n7\n{SIZE}\n"));
    assert!(started.elapsed().as_secs_f64() > 1.2, "held for {:?}", started.elapsed());
    assert!(class.charged().0 >= SIZE, "{:?}", class.show());
}

/// A file that the filtered guest reads, cold.
fn cold_file(folder: &Path) {
    cold::make(&folder.join("cold"), 2 << 20).expect("a file");
}

#[test]
fn a_program_that_filters_its_own_system_calls() {
    for action in ["errno", "kill", "trap"] {
        for how in ["prctl", "seccomp", "strict"] {
            if how == "strict" && action != "kill" {
                continue;
            }
            let Some(bare) = guest("filter.c", &[action, how], cold_file) else {
                skip!("no compiler")
            };
            let expected = if action == "errno" { 5 } else { 6 };
            assert_eq!(bare.status, Some(expected), "the guest itself: {bare:?}");
        }
    }
}

#[test]
fn what_is_read_behind_a_filter_is_charged_once() {
    // What is asked for; the whole file, which the kernel may read ahead, and the program itself.
    const LEAST: u64 = 1_200_000;
    const MOST: u64 = 3 << 20;
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = compiler.compile("filter.c");
    let words = |action| [program.to_str().expect("UTF-8").to_owned(), action, "prctl".to_owned()];
    let charged = |action: &str| {
        let (class, place) = (Class::new("50M"), product::folder());
        cold_file(place.path());
        // From here on there is a class to ask.
        run(&mut class.command(["true"])).succeeded();
        let mut command = class.command(words(action.to_owned()));
        command.current_dir(place.path()).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut guest = command.spawn().expect("it starts");
        // It ends with its input. The library sees the last of it as it ends; policyd reads its account then, which is there
        // until we wait for it.
        drop(guest.stdin.take());
        let begin = Instant::now();
        while class.charged().0 < LEAST && begin.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(5));
        }
        guest.wait().expect("it ends");
        class.charged().0
    };
    // Where the filter does not allow us to look, policyd does.
    for action in ["allow", "errno"] {
        let charged = charged(action);
        assert!((LEAST..=MOST).contains(&charged), "{action}: {charged}");
    }
}

#[test]
fn real_programs_that_filter_their_own_system_calls() {
    let file =
        if Path::new("/usr/bin/file").exists() { "/usr/bin/file" } else { skip!("no file(1)") };
    compare(&[file, "/bin/sh", "/etc/passwd", "/usr/bin/perl"], nothing).succeeded();
    if !Path::new("/usr/bin/man").exists() {
        skip!("no man(1)");
    }
    compare(&["/usr/bin/man", "--version"], nothing).succeeded();
    compare(&["/usr/bin/man", "-P", "cat", "man"], nothing);
}

#[test]
fn chroot_and_namespaces() {
    if !product::is_root() {
        skip!("only the superuser can chroot");
    }
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = compiler.compile("confined.c");
    let place = Place::default();
    let bare = place.run(&mut Command::new(&program), nothing).succeeded();
    for limit in LIMITS {
        let name = format!("test-root-{}-{limit}", std::process::id());
        let discnice = |words: &[&str]| {
            let mut command = Command::new(product::program());
            command.args(words);
            command
        };
        let mut command = discnice(&["run", "--class", &name, "--disk", limit, "--"]);
        let held = place.run(command.arg(&program), nothing);
        let _ = run(&mut discnice(&["class", "rm", "--force", &name]));
        assert_same(&bare, &held, limit);
    }
}
