//! Calls that a program wants not to wait do not wait for us either.

use std::path::Path;

use discnice_tests::bare::Place;
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::{cold, product, skip};

/// Of the file: two seconds of the limit.
const SIZE: usize = 8 << 20;
const LIMIT: &str = "4M";
/// A call that waits for the class takes longer, by far.
const MILLISECONDS: f64 = 200.0;

fn data(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;

    let path = folder.join("data");
    cold::make(&path, SIZE).expect("a file");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).expect("the file is ours");
}

#[test]
fn a_call_that_must_not_wait_is_made_at_once_or_refused() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("nowait.c");
    let class = Class::new(LIMIT);
    let words = [guest.to_str().expect("UTF-8"), "data"];
    let outcome = Place::default().run(&mut class.command(words), data).succeeded();
    let text = outcome.text();
    let calls: Vec<[f64; 3]> = text
        .lines()
        .map(|line| {
            let numbers: Vec<f64> = line.split(' ').map(|one| one.parse().unwrap()).collect();
            numbers.try_into().expect("a result, errno, and milliseconds")
        })
        .collect();
    let [read, direct, written] = calls[..] else { panic!("{outcome:?}") };
    for call in [read, direct, written] {
        assert!(call[2] < MILLISECONDS, "{text}");
    }
    assert_eq!(read[0], 4096.0, "it is cached: {text}");
    for call in [direct, written] {
        assert_eq!(call[..2], [-1.0, f64::from(libc::EAGAIN)], "the class owes: {text}");
    }
}
