//! Apart from time, a program cannot tell: guests of one concern each print all that they can
//! see, and print the same under every limit as they do bare.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::bare::{LIMITS, Place, assert_same, compare, guest, nothing};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Outcome, run};
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

#[test]
fn a_linked_librarys_constructor_does_io() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let library = compiler.compile_with("constructed.c", &["-shared", "-fPIC"]).expect("a library");
    let search = format!("-Wl,-rpath,{}", folder.path().display());
    let library = library.to_str().expect("UTF-8");
    let linked = compiler.compile_with("loader.c", &["-DLINKED", library, &search]);
    compare(&[linked.expect("a program").to_str().expect("UTF-8")], nothing).succeeded();
}

#[test]
fn a_loaded_library_does_io() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let library = compiler.compile_with("constructed.c", &["-shared", "-fPIC"]).expect("a library");
    let loader = compiler.compile("loader.c");
    let words = [loader.to_str().expect("UTF-8"), library.to_str().expect("UTF-8")];
    compare(&words, nothing).succeeded();
}

#[test]
fn libraries_are_looked_for_as_their_caller_says() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let (near, far) = (folder.path().join("near"), folder.path().join("far"));
    for place in [&near, &far] {
        fs::create_dir(place).expect("our folder");
    }
    let within = |place: &Path, source, options: &[&str]| {
        Compiler::new(place).expect("a compiler").compile_with(source, options).expect("a library")
    };
    within(&far, "constructed.c", &["-shared", "-fPIC"]);
    let library = ["-shared", "-fPIC", "-DLIBRARY", "-Wl,-rpath,$ORIGIN/../far", "-ldl"];
    within(&near, "caller.c", &library);
    let program = compiler.compile_with("caller.c", &["-Wl,-rpath,$ORIGIN/near", "-ldl"]);
    let program = program.expect("a program");
    // What the program finds by its own run path finds the other one by its own; the program does
    // not find that one.
    let words = [program.to_str().expect("UTF-8"), "libconstructed.so", "libcaller.so"];
    let bare = compare(&words, nothing).succeeded();
    assert!(
        bare.text().contains("libconstructed.so: not found\nlibcaller.so: loaded\n"),
        "{bare:?}"
    );
    assert!(bare.text().contains("libconstructed.so: loaded\n"), "{bare:?}");
}

#[test]
fn the_users_own_preloaded_library_is_kept_and_seen() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let library = compiler.compile_with("constructed.c", &["-shared", "-fPIC"]).expect("a library");
    let preload = format!("LD_PRELOAD={}", library.display());
    for command in ["cat /dev/null", "echo $LD_PRELOAD", "env | grep -c -e ^LD_ -e ^DISC"] {
        compare(&["env", &preload, "sh", "-c", command], nothing).succeeded();
    }
    // Set before `discnice` itself is.
    let bare = run(product::as_user("env").args([&preload, "sh", "-c", "echo $LD_PRELOAD"]));
    let class = Class::new("50M");
    let mut held = product::as_user("env");
    held.arg(&preload).arg(product::program());
    held.args(["run", "--class", class.name(), "--disk", "50M", "--"]);
    let held = run(held.args(["sh", "-c", "echo $LD_PRELOAD"]));
    // The library also speaks while `discnice` runs, which is not part of the comparison.
    let last =
        |outcome: &Outcome| outcome.text().lines().rfind(|l| l.starts_with('/')).map(str::to_owned);
    assert_eq!(last(&bare), last(&held), "{held:?}");
    assert!(last(&bare).is_some(), "{bare:?}");
}

#[test]
fn children_see_exactly_the_environment_they_were_given() {
    let python = "import os,sys; print(sorted(os.environb.items()))";
    for words in [
        &["env", "-i", "/usr/bin/env"][..],
        &["env", "-i", "A=b", "sh", "-c", "env"],
        &["env", "-i", "A=b", "/usr/bin/python3", "-c", python],
        &["env", "-i", "/bin/sh", "-c", "/usr/bin/env -i /usr/bin/env | wc -c"],
        &["/usr/bin/python3", "-c", python],
        &["cat", "/proc/self/cmdline"],
        // What is erased stays as zeroes.
        &["sh", "-c", "tr '\\0' '\\n' < /proc/self/environ | grep ."],
        &[
            "env",
            "LD_PRELOAD=libc.so.6",
            "sh",
            "-c",
            "tr '\\0' '\\n' < /proc/$$/environ | grep LD_",
        ],
        &["env", "-i", "A=b", "LD_PRELOAD=libc.so.6", "/usr/bin/env"],
        &[
            "sh",
            "-c",
            "env -i sh -c 'echo $0 $# $PPID' | wc -w; set | grep -i -e discnice -e preload",
        ],
        &[
            "/usr/bin/perl",
            "-e",
            "print map { \"$_=$ENV{$_}\\n\" } sort keys %ENV; system('env | sort')",
        ],
    ] {
        let bare = compare(words, nothing);
        assert_eq!(bare.errors, b"", "{words:?}");
    }
}

#[test]
fn nested_runs_work() {
    let program = product::program();
    let program = program.to_str().expect("UTF-8");
    let (inner, outer) = (Class::new("1M"), Class::new("50M"));
    let data = |folder: &Path| cold::make(&folder.join("data"), 300_000).expect("a file");
    let words = [
        program,
        "run",
        "--class",
        inner.name(),
        "--disk",
        "1M",
        "--",
        "sh",
        "-c",
        "cat data | md5sum; env | grep -c DISC",
    ];
    let place = Place::default();
    let bare = place.run(product::as_user("sh").args(&words[8..]), data);
    let held = place.run(&mut outer.command(words), data);
    assert_same(&bare, &held, "nested");
    assert!(inner.charged().0 >= 300_000, "the inner class is charged: {:?}", inner.show());
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
        // It waits for the end of its input: a watcher on a busy machine sees what it has read some time later. The library
        // sees the last of it as it ends.
        let begin = Instant::now();
        while action == "errno"
            && class.charged().0 < LEAST
            && begin.elapsed() < Duration::from_secs(5)
        {
            thread::sleep(Duration::from_millis(5));
        }
        drop(guest.stdin.take());
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

#[test]
fn the_exit_status_and_signal_are_the_commands_own() {
    for (script, status, signal) in [
        ("exit 0", Some(0), None),
        ("exit 77", Some(77), None),
        ("exit 255", Some(255), None),
        ("kill -9 $$", None, Some(libc::SIGKILL)),
        ("kill -SEGV $$", None, Some(libc::SIGSEGV)),
        ("trap 'echo caught; exit 4' TERM; kill $$; echo no", Some(4), None),
        ("yes | head -1; echo ${PIPESTATUS:-none}", Some(0), None),
    ] {
        let bare = compare(&["sh", "-c", script], nothing);
        assert_eq!((bare.status, bare.signal), (status, signal), "{script}");
    }
}

#[test]
fn what_the_command_inherits_is_what_discnice_inherited() {
    // Closed and extra descriptors, ignored and blocked signals, limits, priority.
    for script in [
        "exec 0<&- ; \"$@\"",
        "exec 1>&- ; \"$@\"",
        "exec 2>&- ; \"$@\"",
        "exec 0<&- 1>&- 2>&- ; \"$@\"",
        "exec 7</dev/null 9</dev/null; \"$@\"",
        "trap '' PIPE INT; \"$@\"",
        "ulimit -n 20; ulimit -c 0; nice -n 3 \"$@\"",
        "umask 055; \"$@\"",
    ] {
        let report = "import os, resource, signal, sys\n\
            f = os.open('out', os.O_WRONLY | os.O_CREAT, 0o777)\n\
            fds = sorted(os.listdir('/proc/self/fd'))\n\
            status = [l for l in open('/proc/self/status') if l.startswith(('SigB', 'SigI', 'SigC')) or l.startswith('Umask')]\n\
            os.write(f, repr((f, fds, status, resource.getrlimit(resource.RLIMIT_NOFILE), os.nice(0))).encode())\n";
        let observe = |prefix: &[&str]| {
            let folder = product::folder();
            let mut command = product::as_user("sh");
            command.args(["-c", script, "sh"]).args(prefix);
            let ended = run(command
                .args(["/usr/bin/python3", "-S", "-c", report])
                .current_dir(folder.path()));
            (ended, fs::read_to_string(folder.path().join("out")))
        };
        if !Path::new("/usr/bin/python3").exists() {
            skip!("no python3");
        }
        let class = Class::new("50M");
        let program = product::program();
        let program = program.to_str().expect("UTF-8");
        let bare = observe(&[]);
        let held = observe(&[program, "run", "--class", class.name(), "--disk", "50M", "--"]);
        assert_eq!(bare.1.as_ref().ok(), held.1.as_ref().ok(), "{script}: {:?}", held.0);
        assert!(bare.1.is_ok(), "{script}: {:?}", bare.0);
        assert_same(&bare.0, &held.0, script);
    }
}

#[test]
fn programs_named_by_links_and_relative_paths() {
    fn link(folder: &Path) {
        symlink("/bin/echo", folder.join("echo")).expect("a link");
        fs::create_dir(folder.join("sub dir")).expect("a folder");
        product::copy_program("/bin/echo", folder.join("sub dir/my echo"));
    }
    compare(&["./echo", "hello", "", "two words"], link).succeeded();
    compare(&["sub dir/my echo", "-n", "--", "x"], link).succeeded();
    compare(&["echo", "--disk", "5M", "--"], nothing).succeeded();
}
