//! Starting a program, loading a library and mapping a file read the disk by page faults, which no
//! call announces: under a low limit they are no burst, and cached ones are not delayed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

const MIB: u64 = 1 << 20;
/// The limit, and how many bytes it allows in a second.
const LIMIT: &str = "2M";
const RATE: u64 = 2 * MIB;
/// How much a program has to load.
const SIZE: usize = 6 << 20;

/// Starts the command and samples what its class is charged until it has ended; returns the
/// furthest that it ever was ahead of its limit, in bytes, how much there was at all, and how long
/// it took.
fn watch(class: &Class, mut command: Command) -> (u64, u64, Duration) {
    // What DiscNice's own program reads to start, before it can know the limit, is paid here.
    run(&mut class.command(["true"])).succeeded();
    let (read, written) = class.charged();
    let before = read + written;
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("the command starts");
    let mut ahead = 0;
    loop {
        let ended = child.try_wait().expect("our child");
        let (read, written) = class.charged();
        let charged = (read + written).saturating_sub(before);
        // Later than that: on a busy machine the answer may take its time, in which more was allowed.
        let allowed = (begun.elapsed().as_secs_f64() * RATE as f64) as u64;
        ahead = ahead.max(charged.saturating_sub(allowed));
        if let Some(status) = ended {
            assert!(status.success(), "{command:?}: {status}");
            return (ahead, charged, begun.elapsed());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A program and a library of [`SIZE`] each, of data that is in no cache.
fn compile(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let compiler = Compiler::new(folder)?;
    let data = folder.join("data");
    cold::make(&data, SIZE).expect("room for a file");
    let data = format!("-DDATA=\"{}\"", data.display());
    let program = compiler.compile_with("large.c", &[&data]).ok()?;
    let options = ["-shared", "-fPIC", "-DLIBRARY", &data];
    let library = compiler.compile_with("large.c", &options).ok()?;
    cold::drop_all(folder).expect("files on a disk");
    Some((program, library))
}

#[test]
fn a_cold_program_is_loaded_at_the_limit_and_a_cached_one_at_once() {
    let folder = product::folder();
    let Some((program, _)) = compile(folder.path()) else { skip!("no compiler") };
    let class = Class::new(LIMIT);
    let (ahead, charged, time) = watch(&class, class.command([&program]));
    if charged < SIZE as u64 {
        skip!("the kernel keeps no account of the disk here, or the program stayed cached");
    }
    assert!(ahead <= RATE / 2, "{ahead} bytes before their time");
    assert!(time > Duration::from_secs(2), "{charged} bytes in {time:?}");
    // A program that executes others, each way that there is, has them loaded the same way.
    for script in ["exec \"$0\"", "\"$0\"; true"] {
        cold::drop_all(folder.path()).expect("files on a disk");
        let class = Class::new(LIMIT);
        let words = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), program.as_os_str()];
        let (ahead, charged, _) = watch(&class, class.command(words));
        assert!(charged >= SIZE as u64, "{script}: only {charged}");
        assert!(ahead <= RATE / 2, "{script}: {ahead} bytes before their time");
    }
    let class = Class::new(LIMIT);
    let (_, charged, _) = watch(&class, class.command([&program]));
    assert!(charged < MIB, "all of it is cached: {charged}");
}

#[test]
fn a_cold_library_is_loaded_at_the_limit() {
    let folder = product::folder();
    let Some((_, library)) = compile(folder.path()) else { skip!("no compiler") };
    let loader = Compiler::new(folder.path()).map(|compiler| compiler.compile("loader.c"));
    let Some(loader) = loader else { skip!("no compiler") };
    let class = Class::new(LIMIT);
    let (ahead, charged, _) = watch(&class, class.command([&loader, &library]));
    if charged < SIZE as u64 {
        skip!("the kernel keeps no account of the disk here, or the library stayed cached");
    }
    assert!(ahead <= RATE / 2, "{ahead} bytes before their time");
}

/// Reads a file through a mapping, and says a dot for each 64 KiB.
const SCANNER: &str = "
import mmap, os, sys
with open(sys.argv[1], 'rb') as file:
    mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
for place in range(0, len(mapping), 65536):
    mapping[place:place + 65536].count(b'x')
    os.write(1, b'.')
";

//= discnice/5.5-mmap
#[test]
fn a_scan_of_a_mapping_is_paid_for_at_any_call() {
    let folder = product::folder();
    let data = folder.path().join("data");
    cold::make(&data, SIZE).expect("room for a file");
    let class = Class::new(LIMIT);
    let words = ["python3".as_ref(), "-c".as_ref(), SCANNER.as_ref(), data.as_os_str()];
    run(&mut class.command(["python3", "-c", "import mmap"])).succeeded();
    cold::drop_all(folder.path()).expect("files on a disk");
    let (ahead, charged, time) = watch(&class, class.command(words));
    if charged < SIZE as u64 {
        skip!("the kernel keeps no account of the disk here, or the file stayed cached");
    }
    assert!(ahead <= RATE / 2, "{ahead} bytes before their time");
    assert!(time > Duration::from_secs(2), "{charged} bytes in {time:?}");
}

/// Reads a file through a mapping from end to end without any call.
const SILENT: &str = "
import mmap, sys
with open(sys.argv[1], 'rb') as file:
    mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
mapping.find(b'no such text in here')
";

//= discnice/5.5-mmap
#[test]
fn a_scan_of_a_mapping_without_calls_is_held_from_outside() {
    let folder = product::folder();
    let data = folder.path().join("data");
    cold::make(&data, 24 << 20).expect("room for a file");
    let class = Class::new("8M");
    let words = ["python3".as_ref(), "-c".as_ref(), SILENT.as_ref(), data.as_os_str()];
    run(&mut class.command(["python3", "-c", "import mmap"])).succeeded();
    cold::drop_all(folder.path()).expect("files on a disk");
    let (_, charged, time) = watch(&class, class.command(words));
    if charged < 24 * MIB {
        skip!("the kernel keeps no account of the disk here, or the file stayed cached");
    }
    assert!(time > Duration::from_secs(2), "{charged} bytes in {time:?}");
}

/// What the guest says about its mappings at first, under a limit.
fn advice(guest: &Path, folder: &Path, limit: &str) -> String {
    let class = Class::new(limit);
    let mut command = class.command([guest.as_os_str(), "advice".as_ref()]);
    let text = run(command.current_dir(folder)).succeeded().text();
    text.lines().find(|line| line.starts_with("random")).unwrap_or_default().to_owned()
}

#[test]
fn mapped_files_are_read_page_by_page_under_a_low_limit_only() {
    let folder = product::folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("our folder");
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("mappings.c");
    for limit in ["unlimited", "50M"] {
        assert_eq!(
            advice(&guest, folder.path(), limit),
            "random: whole 0, own 0, populated 0, little 0, none 0, ordered 0",
            "{limit}"
        );
    }
    assert_eq!(
        advice(&guest, folder.path(), LIMIT),
        "random: whole 1, own 1, populated 1, little 0, none 0, ordered 1"
    );
}

#[test]
fn mapped_files_get_their_read_ahead_back_when_the_limit_is_lifted() {
    let folder = product::folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("our folder");
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("mappings.c");
    let class = Class::new(LIMIT);
    let mut command = class.command([guest.as_os_str(), "advice".as_ref(), "wait".as_ref()]);
    command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the guest starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("child") {
        line.clear();
        assert!(output.read_line(&mut line).expect("text") > 0, "it ended early");
    }
    run(&mut product::discnice(["class", "set", class.name(), "--disk", "unlimited"])).succeeded();
    child.stdin.take().expect("a pipe").write_all(b"\n").expect("it waits for a line");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert!(child.wait().expect("our child").success());
    assert!(rest.contains("random: populated 0, in order: own 0, ordered 1\n"), "{rest}");
}
