//! What a polite job reads leaves the page cache with it, and what was there before stays.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

const SIZE: u64 = 4 << 20;

/// A file that is not cached, and about which the kernel answers the user of the product.
fn cold_file(path: &Path, size: u64) {
    cold::make(path, usize::try_from(size).expect("it fits")).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).expect("our file");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

//= gray-box/6-interposition
#[test]
fn what_a_polite_job_reads_leaves_with_it_and_what_was_there_stays() {
    let folder = product::folder();
    let [cold, warm] = ["cold", "warm"].map(|name| folder.path().join(name));
    [&cold, &warm].iter().for_each(|path| cold_file(path, SIZE));
    if cold::kept(&cold) != Some(0) {
        skip!("a kernel without cachestat(2)");
    }
    fs::read(&warm).expect("a file");
    let mut cat = product::discnice(["run", "--", "cat", text(&cold), text(&warm)]);
    assert_eq!(run(&mut cat).succeeded().output.len() as u64, 2 * SIZE);
    assert_eq!([&cold, &warm].map(|path| cold::kept(path)), [Some(0), Some(SIZE)]);
    // Unless it is told to keep it, or has numbers of its own.
    for options in [&["--cache", "keep"][..], &["--disk", "100M"]] {
        cold::drop_all(&cold).expect("a file");
        let mut cat = product::discnice(["run"]);
        run(cat.args(options).args(["--", "cat", text(&cold)])).succeeded();
        assert_eq!(cold::kept(&cold), Some(SIZE), "{options:?}");
    }
    cold::drop_all(&cold).expect("a file");
    let numbered = ["run", "--disk", "100M", "--cache", "protect", "--", "cat", text(&cold)];
    run(&mut product::discnice(numbered)).succeeded();
    assert_eq!(cold::kept(&cold), Some(0));
}

#[test]
fn a_file_that_is_opened_again_stays() {
    let folder = product::folder();
    let header = folder.path().join("header");
    cold_file(&header, SIZE);
    if cold::kept(&header) != Some(0) {
        skip!("a kernel without cachestat(2)");
    }
    let class = Class::new("unlimited");
    let set = ["class", "set", class.name(), "--cache", "protect"];
    run(&mut product::discnice(set)).succeeded();
    assert_eq!(class.show()["cache"], "protect");
    for kept in [0, SIZE, SIZE] {
        run(&mut class.command(["cat", text(&header)])).succeeded();
        assert_eq!(cold::kept(&header), Some(kept));
    }
}

#[test]
fn a_large_file_leaves_while_it_is_read() {
    const LARGE: u64 = 96 << 20;
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no C compiler") };
    let data = folder.path().join("data");
    cold_file(&data, LARGE);
    if cold::kept(&data) != Some(0) {
        skip!("a kernel without cachestat(2)");
    }
    let reader = compiler.compile("reader.c");
    let mut job = product::discnice(["run", "--", text(&reader), text(&data), "60"]);
    let mut job = job.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = [0; 4];
    job.stdout.as_mut().expect("piped").read_exact(&mut line).expect("output");
    // It has read all of it, and still has it open.
    let left = cold::kept(&data).expect("asked before");
    job.kill().expect("our child");
    job.wait().expect("our child");
    assert!(left <= LARGE / 3, "{left} of {LARGE} are left");
}

#[test]
fn trees_leave_too() {
    let folder = product::folder();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).expect("a folder");
    let files: Vec<_> = (0..100).map(|number| tree.join(number.to_string())).collect();
    files.iter().for_each(|file| cold_file(file, 20_000));
    if cold::kept(&files[0]) != Some(0) {
        skip!("a kernel without cachestat(2)");
    }
    let parent = text(folder.path());
    for words in [
        vec!["sh", "-c", "tar cf - -C \"$0\" tree | wc -c", parent],
        vec!["grep", "-r", "nothing of this", text(&tree)],
        vec![
            "python3",
            "-c",
            "import sys, pathlib; [p.read_bytes() for p in pathlib.Path(sys.argv[1]).iterdir()]",
            text(&tree),
        ],
    ] {
        cold::drop_all(&tree).expect("files");
        let mut job = product::discnice(["run", "--"]);
        let outcome = run(job.args(&words));
        assert!(outcome.status.is_some_and(|status| status < 2), "{outcome:?}");
        let left: u64 = files.iter().filter_map(|file| cold::kept(file)).sum();
        // Some of them are taken for files that were seen: see `Seen`.
        assert!(left < 100 * 20_000 / 4, "{words:?}: {left} bytes are left");
    }
}

const STATIC: &str = "/bin/busybox";

/// As a backup in Go, which our library cannot enter either.
#[test]
fn what_a_static_program_reads_leaves_too() {
    if !Path::new(STATIC).exists() {
        skip!("no static busybox");
    }
    let folder = product::folder();
    let [cold, warm, last] = ["cold", "warm", "last"].map(|name| folder.path().join(name));
    [&cold, &warm, &last].iter().for_each(|path| cold_file(path, SIZE));
    if cold::kept(&cold) != Some(0) {
        skip!("a kernel without cachestat(2)");
    }
    fs::read(&warm).expect("a file");
    let mut cat = product::discnice(["run", "--", STATIC, "cat"]);
    let read = run(cat.args([&cold, &warm, &last])).succeeded();
    assert_eq!(read.output.len() as u64, 3 * SIZE);
    let kept = |files: [&Path; 3]| files.map(cold::kept);
    assert_eq!(kept([&cold, &warm, &last]), [Some(0), Some(SIZE), Some(0)]);
    // Unless it is told to keep it.
    let mut cat = product::discnice(["run", "--cache", "keep", "--", STATIC, "cat"]);
    run(cat.args([&cold])).succeeded();
    assert_eq!(cold::kept(&cold), Some(SIZE));
}

#[test]
fn a_tree_and_a_large_file_that_static_programs_read_leave_too() {
    const LARGE: u64 = 96 << 20;
    let folder = product::folder();
    let compiler = Compiler::new(folder.path()).filter(|_| Path::new(STATIC).exists());
    let Some(compiler) = compiler else { skip!("no C compiler, or no static busybox") };
    let (tree, data) = (folder.path().join("tree"), folder.path().join("data"));
    fs::create_dir(&tree).expect("a folder");
    let files: Vec<_> = (0..100).map(|number| tree.join(number.to_string())).collect();
    files.iter().for_each(|file| cold_file(file, 20_000));
    cold_file(&data, LARGE);
    if cold::kept(&data) != Some(0) {
        skip!("a kernel without cachestat(2)");
    }
    let mut job = product::discnice(["run", "--", STATIC, "tar", "cf", "-", "-C"]);
    run(job.args([folder.path(), Path::new("tree")])).succeeded();
    let left: u64 = files.iter().filter_map(|file| cold::kept(file)).sum();
    assert!(left < 100 * 20_000 / 4, "{left} bytes are left");
    let reader = compiler.compile_with("reader.c", &["-static"]).expect("a static program");
    let mut job = product::discnice(["run", "--", text(&reader), text(&data), "60"]);
    let mut job = job.stdout(Stdio::piped()).spawn().expect("it starts");
    job.stdout.as_mut().expect("piped").read_exact(&mut [0; 4]).expect("output");
    let left = cold::kept(&data).expect("asked before");
    job.kill().expect("our child");
    job.wait().expect("our child");
    assert!(left <= LARGE / 3, "{left} of {LARGE} are left");
}
