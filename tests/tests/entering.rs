//! The library gets only into programs that can load it, nothing of it shows in any other, and `discnice doctor` tells which
//! are which.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_tests::bare::assert_same;
use discnice_tests::class::Class;
use discnice_tests::guest::{Compiler, musl};
use discnice_tests::process::run;
use discnice_tests::{product, skip};

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
        let program = program.to_str().expect("UTF-8");
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

/// What the guest says that starts programs by pidfd_spawn(3); `libc` names a library to be linked before libc.
fn spawning(compiler: &Compiler, libc: &[&str]) -> Vec<String> {
    let options: Vec<_> = libc.iter().copied().chain(["-Wl,--no-as-needed", "-ldl"]).collect();
    let guest = compiler.compile_with("spawning.c", &options).expect("a program");
    let class = Class::new("50M");
    let outcome = run(&mut class.command([&guest])).succeeded();
    outcome.text().lines().map(str::to_owned).collect()
}

/// Both programs that the guest started, and their children, had the library.
fn assert_entered(told: &[String]) {
    let [own, of_child, error, own_by_name, of_child_by_name, error_by_name] = told else {
        panic!("{told:?}")
    };
    for mapped in [own, of_child, own_by_name, of_child_by_name] {
        assert!(mapped.parse::<u32>().is_ok_and(|mapped| mapped > 0), "{told:?}");
    }
    assert_eq!([error, error_by_name], ["error 0, descriptor 1"; 2]);
}

#[test]
fn programs_that_are_started_by_pidfd_spawn_are_entered() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let options = ["-shared", "-fPIC", "-DLIBRARY", "-ldl"];
    let library = compiler.compile_with("spawning.c", &options).expect("a library");
    let (search, library) =
        (folder.path().to_str().expect("UTF-8"), library.to_str().expect("UTF-8"));
    let search = format!("-Wl,-rpath,{search}");
    let told = spawning(&compiler, &["-Wl,--no-as-needed", library, &search]);
    assert_entered(&told);
}

#[test]
fn pidfd_spawn_is_refused_only_where_libc_lacks_it() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let told = spawning(&compiler, &[]);
    if told.len() > 2 {
        return assert_entered(&told);
    }
    let refused = format!("error {}, descriptor -1", libc::ENOSYS);
    assert_eq!(told, [refused.as_str(), refused.as_str()]);
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
        let said = run(product::discnice(["doctor"]).arg(&program)).text();
        let line = said.lines().find(|line| line.contains(" program ")).expect("a line");
        assert!(line.starts_with("ok "), "{line}");
        assert!(line.contains(how), "{line}");
        let class = Class::new("50M");
        let held = run(&mut class.command([&program]));
        assert_eq!((held.status, held.complaint().as_str()), (Some(0), ""), "{held:?}");
    }
    let setuid = Path::new("/bin/su");
    if fs::metadata(setuid).is_ok_and(|meta| meta.permissions().mode() & 0o4000 != 0) {
        let said = run(product::discnice(["doctor"]).arg(setuid)).text();
        let line = said.lines().find(|line| line.contains(" program ")).expect("a line");
        assert!(line.starts_with("BAD ") && line.contains("cannot be limited"), "{line}");
    }
}
