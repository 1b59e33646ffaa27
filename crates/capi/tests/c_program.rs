//! The C interface as a C programmer meets it: installed, found by pkg-config, compiled by gcc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    output
}

fn words(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn functions_of_the_document_are_in_the_header_and_the_other_way_round() {
    let read = |path: &str| fs::read_to_string(here().join(path)).unwrap();
    let (header, document) = (read("include/discnice.h"), read("../../docs/api.md"));
    let table =
        document.split("## C\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let named: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .collect();
    for name in &named {
        assert!(header.contains(&format!("{name}(")), "not in the header: {name}");
    }
    let declared = header.split(|one: char| !one.is_alphanumeric() && one != '_' && one != '(');
    for name in declared.filter_map(|word| Some(word.split_once('(')?.0)) {
        let is_ours = name.starts_with("discnice_");
        assert!(!is_ours || named.contains(&name), "not in the document: {name}");
    }
}

/// `DISCNICE_BLESS=1 cargo test -p discnice-capi header` rewrites the header.
#[test]
fn header_is_what_the_source_says() {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(here().join("src/lib.rs"))
        .generate()
        .unwrap();
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let file = here().join("include/discnice.h");
    if std::env::var_os("DISCNICE_BLESS").is_some() {
        fs::write(&file, &generated).unwrap();
    }
    let checked_in = fs::read(&file).unwrap_or_default();
    assert!(generated == checked_in, "include/discnice.h is out of date: see this test's doc");
}

struct Installed(tempfile::TempDir);

impl Installed {
    fn new() -> Self {
        let prefix = tempfile::tempdir().unwrap();
        run(Command::new("sh").arg(here().join("install.sh")).arg(prefix.path()).arg("dev"));
        Self(prefix)
    }

    fn pkg_config(&self, arguments: &[&str]) -> Vec<String> {
        let path = self.0.path().join("lib/pkgconfig");
        let mut command = Command::new("pkg-config");
        words(&run(command.env("PKG_CONFIG_PATH", path).args(arguments).arg("discnice")))
    }

    fn compile(&self, source: &Path, flags: &[String]) -> PathBuf {
        let program = self.0.path().join("program");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
        run(gcc.args(flags).arg("-pthread"));
        program
    }

    fn start(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_LIBRARY_PATH", self.0.path().join("lib"))
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .env("XDG_RUNTIME_DIR", self.0.path());
        command
    }
}

//= ms-manners/7.1-call
#[test]
fn the_duplicate_finder_finds_duplicates() {
    let installed = Installed::new();
    let source = here().join("../../examples/duplicate-finder/duplicates.c");
    let data = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a", b"same" as &[u8]), ("b", b"same"), ("c", b"else"), ("d", b"")] {
        fs::write(data.path().join(name), bytes).unwrap();
    }
    let linkings = [vec!["--cflags", "--libs"], vec!["--cflags", "--libs", "--static"]];
    for linking in linkings {
        let program = installed.compile(&source, &installed.pkg_config(&linking));
        let output = run(installed.start(&program).arg(data.path()));
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(found.lines().count(), 1, "{found}");
        assert!(found.contains("/a") && found.contains("/b"), "{found}");
    }
    let failed = installed.start(&installed.0.path().join("program")).arg("/nonexistent").output();
    assert!(!failed.unwrap().status.success());
}

#[test]
fn bad_arguments_are_refused_and_harmless() {
    let installed = Installed::new();
    let source = here().join("tests/bad_arguments.c");
    let program = installed.compile(&source, &installed.pkg_config(&["--cflags", "--libs"]));
    run(&mut installed.start(&program));
}

#[test]
fn a_forked_child_waits_for_no_thread_of_its_parent() {
    let installed = Installed::new();
    let source = here().join("tests/forked.c");
    let program = installed.compile(&source, &installed.pkg_config(&["--cflags", "--libs"]));
    run(&mut installed.start(&program));
}

//= gray-box/4.3.2-gb-alloc
#[test]
fn what_the_kernel_hides() {
    let installed = Installed::new();
    let source = here().join("tests/graybox.c");
    let program = installed.compile(&source, &installed.pkg_config(&["--cflags", "--libs"]));
    let data = tempfile::tempdir_in("/var/tmp").unwrap();
    let files = [("one", 3_000_000), ("two", 10)].map(|(name, size)| {
        let path = data.path().join(name);
        fs::write(&path, vec![b'x'; size]).unwrap();
        path
    });
    run(installed.start(&program).args(files));
}

#[test]
fn the_toolbox() {
    let installed = Installed::new();
    let mut flags = installed.pkg_config(&["--cflags", "--libs"]);
    flags.push("-lm".into());
    let program = installed.compile(&here().join("tests/toolbox.c"), &flags);
    let data = tempfile::tempdir_in("/var/tmp").unwrap();
    for name in ["one", "two", "three"] {
        fs::write(data.path().join(name), name.repeat(2000)).unwrap();
    }
    run(installed.start(&program).arg(data.path()));
    assert_eq!(fs::read_to_string(data.path().join("two")).unwrap(), "two".repeat(2000));
}

//= gray-box/4.1.3-applications
#[test]
fn the_gray_box_examples_do_what_the_plain_programs_do() {
    let installed = Installed::new();
    let flags = installed.pkg_config(&["--cflags", "--libs"]);
    let data = tempfile::tempdir_in("/var/tmp").unwrap();
    let examples = here().join("../../examples");

    let grep = installed.compile(&examples.join("gb-grep/gb-grep.c"), &flags);
    let files = ["a", "b", "c", "d"].map(|name| data.path().join(name));
    for (number, file) in files.iter().enumerate() {
        fs::write(file, format!("has the word {number}\nnothing\nword at the end")).unwrap();
    }
    fs::write(&files[2], "nothing here\n").unwrap();
    let sorted = |output: Output| {
        let mut lines: Vec<_> = output.stdout.split(|byte| *byte == b'\n').collect();
        lines.sort_unstable();
        lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>()
    };
    let plain = sorted(run(Command::new("grep").args(["-HF", "word"]).args(&files)));
    assert_eq!(sorted(run(installed.start(&grep).arg("word").args(&files))), plain);
    assert_eq!(plain.len(), 7, "six lines and the end");
    let status = |words: &[&Path]| {
        installed.start(&grep).arg("word").args(words).output().unwrap().status.code()
    };
    assert_eq!(status(&[&files[2]]), Some(1));
    assert_eq!(status(&[&files[0], Path::new("/nowhere/at/all")]), Some(2));

    let sort = installed.compile(&examples.join("gb-fastsort/gb-fastsort.c"), &flags);
    let (input, output) = (data.path().join("input"), data.path().join("output"));
    let mut state = 1u64;
    let mut records: Vec<[u8; 100]> = (0..20_000)
        .map(|_| {
            std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b'a' + (state >> 60) as u8
            })
        })
        .collect();
    fs::write(&input, records.concat()).unwrap();
    // Seven runs, and one.
    for memory in [&["100000", "300000"][..], &[]] {
        run(installed.start(&sort).arg(&input).arg(&output).args(memory));
        records.sort_unstable();
        assert!(fs::read(&output).unwrap() == records.concat(), "{memory:?}");
    }
    assert_eq!(fs::read_dir(data.path()).unwrap().count(), 6, "no run is left");
    fs::write(&input, b"no record").unwrap();
    let refused = installed.start(&sort).arg(&input).arg(&output).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    fs::write(&input, b"").unwrap();
    run(installed.start(&sort).arg(&input).arg(&output));
    assert!(fs::read(&output).unwrap().is_empty());
}

#[test]
fn exactly_the_listed_symbols_are_exported_with_their_version() {
    let installed = Installed::new();
    let library = installed.0.path().join("lib/libdiscnice_testpoint.so");
    let output = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let listed = fs::read_to_string(here().join("discnice.map")).unwrap();
    let listed: Vec<_> = listed
        .lines()
        .filter_map(|line| Some(line.trim().strip_prefix("discnice_")?.trim_end_matches(';')))
        .map(|name| format!("discnice_{name}@@DISCNICE_0.1"))
        .collect();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut exported: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| *name != "DISCNICE_0.1")
        .collect();
    exported.sort_unstable();
    assert_eq!(exported, listed);
}
