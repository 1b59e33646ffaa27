//! Programs that our library cannot enter are held all the same, and cannot tell.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

/// A guest without a dynamic linker, if the machine can make one.
fn static_guest(folder: &Path, source: &str) -> Option<PathBuf> {
    Compiler::new(folder)?.compile_with(source, &["-static"]).ok()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_static_program_is_held_to_its_rate_and_charged_exactly() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let data = folder.path().join("data");
    let size = 8 << 20;
    cold::make(&data, size).expect("a file");
    let bare = run(product::as_user(&reader).arg(&data));
    cold::drop_all(&data).expect("a file");

    let class = Class::new("4M");
    let started = Instant::now();
    let held = run(&mut class.command([text(&reader), text(&data)]));
    let elapsed = started.elapsed();
    assert_eq!(bare, held);
    assert!(elapsed >= Duration::from_millis(1900), "8 MiB at 4 MiB/s took {elapsed:?}");
    let (read, _) = class.charged();
    let expected = size as u64..size as u64 + (1 << 20);
    assert!(expected.contains(&read), "charged {read} of {size}, and what loading costs");
}

#[test]
fn it_is_listed_as_supervised() {
    let folder = product::folder();
    let Some(reader) = static_guest(folder.path(), "reader.c") else { skip!("no static libc") };
    let class = Class::new("50M");
    let mut command = class.command([text(&reader), "/etc/passwd", "5"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut line = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut line).expect("output");
    let shown = class.show();
    discnice_tests::process::send(child.id().cast_signed(), libc::SIGKILL);
    child.wait().expect("our child");
    let member = &shown["members"][0];
    assert_eq!(member["mechanism"], "seccomp", "{shown:#}");
    assert!(member["escape"].is_null(), "{shown:#}");
}
