//! Apart from time, a command cannot tell how it was started: the libraries that it loads, its environment, what it
//! inherits and what it is called are the same as bare, and so is how it ends.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use discnice_tests::bare::{Place, assert_same, compare, nothing};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, Outcome, run, until};
use discnice_tests::{cold, product, skip};

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
fn a_command_does_not_wait_for_what_discnice_itself_reads_to_start() {
    let folder = product::folder();
    let (program, copy) = (product::program(), folder.path().join("discnice"));
    product::copy_program(&program, &copy);
    product::copy_program(
        program.with_file_name("libdiscnice.so"),
        folder.path().join("libdiscnice.so"),
    );
    let class = Class::new("1M");
    cold::drop_all(folder.path()).expect("files of our own");
    let mut command = product::as_user(&copy);
    run(command.args(["run", "--class", class.name(), "--disk", "1M", "--", "true"])).succeeded();
    let (read, _) = class.charged();
    assert!(read < 1 << 20, "{read} bytes");
}

#[test]
fn a_command_that_waits_for_its_program_to_be_read_is_held() {
    let folder = product::folder();
    let found = run(Command::new("readlink").args(["-f", "/usr/bin/python3"])).succeeded().text();
    let large = folder.path().join("large");
    product::copy_program(found.trim_end(), &large);
    cold::drop_all(&large).expect("a file of our own");
    let class = Class::new("512K");
    run(&mut class.command(["true"])).succeeded();
    let mut command = class.run();
    let mut started = Group::start_silent(command.arg(&large).args(["-c", "0"]));
    let members = || class.show()["members"].as_array().expect("members").clone();
    until("it is no member", || !members().is_empty());
    let deadline = Instant::now() + Duration::from_secs(1);
    while Instant::now() < deadline {
        let members = members();
        assert!(members.iter().all(|member| member["escape"].is_null()), "{members:?}");
    }
    assert!(started.try_wait().expect("a child").is_none(), "it need not wait for its program");
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

#[test]
fn a_parent_that_ignores_the_end_of_children_gets_the_commands_status() {
    let mut command = product::as_user("env");
    command.arg("--ignore-signal=CHLD").arg(product::program());
    command.args(["run", "--disk", "50M", "--summary", "--", "sh", "-c", "echo out; exit 7"]);
    let outcome = run(&mut command);
    assert_eq!((outcome.status, &*outcome.text()), (Some(7), "out\n"), "{outcome:?}");
    // The command finds it ignored as well.
    let script = "grep SigIgn /proc/self/status";
    let ignored = |words: &[&str]| {
        let mut command = product::as_user("env");
        command.arg("--ignore-signal=CHLD").args(words).args(["sh", "-c", script]);
        run(&mut command).succeeded().text()
    };
    let program = product::program();
    let under = [program.to_str().expect("text"), "run", "--disk", "50M", "--summary", "--"];
    assert_eq!(ignored(&under), ignored(&[]));
}
