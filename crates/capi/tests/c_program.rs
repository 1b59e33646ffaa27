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
