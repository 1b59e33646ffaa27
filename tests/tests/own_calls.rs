//! The library lists the system calls that it makes, for programs that filter theirs: what strace(1) sees it make is in the list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

/// The section that lists them, a number of two bytes for each.
const SECTION: &str = "discnice_calls";

/// A little-endian number of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// What the built library lists.
fn listed() -> BTreeSet<i64> {
    let library = fs::read(product::program().with_file_name("libdiscnice.so")).expect("built");
    let (table, count) = (number(&library, 40, 8), number(&library, 60, 2));
    let header = |index: usize| &library[table + 64 * index..][..64];
    let content = |header: &[u8]| &library[number(header, 24, 8)..][..number(header, 32, 8)];
    let names = content(header(number(&library, 62, 2)));
    let is_ours = |header: &&[u8]| names[number(header, 0, 4)..].starts_with(SECTION.as_bytes());
    let section = (0..count).map(header).find(is_ours).expect("the section");
    content(section).chunks_exact(2).map(|entry| number(entry, 0, 2) as i64).collect()
}

/// One line of `strace -n -i`: the call's number, where it was made, its text.
fn call(line: &str) -> Option<(i64, usize, &str)> {
    let (number, rest) = line.strip_prefix('[')?.split_once("] [")?;
    let (place, text) = rest.split_once("] ")?;
    Some((number.trim().parse().ok()?, usize::from_str_radix(place, 16).ok()?, text))
}

fn address(text: &str) -> Option<usize> {
    usize::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Where the program's code of the library lies, as its lines tell: opened, then mapped to be executed.
#[derive(Default)]
struct Code {
    opened: Option<String>,
    range: Range<usize>,
}

impl Code {
    fn follow(&mut self, text: &str) {
        let result = text.rsplit_once(" = ").map(|(_, result)| result);
        if text.starts_with("execve(") && result.is_some_and(|result| result.starts_with('0')) {
            *self = Self::default();
        } else if text.starts_with("openat(") && text.contains("libdiscnice.so\"") {
            self.opened = result.map(|fd| format!(", {fd}, "));
        } else if text.starts_with("mmap(")
            && text.contains("PROT_EXEC")
            && self.range.is_empty()
            && self.opened.as_ref().is_some_and(|fd| text.contains(fd))
        {
            let length = text.split(", ").nth(1).and_then(|length| length.parse::<usize>().ok());
            let start = result.and_then(address).expect("an address");
            self.range = start..start + length.expect("a length");
        }
    }
}

/// The library's own calls in a log of one process, and a line of each.
fn made(log: &str) -> BTreeMap<i64, String> {
    let (mut code, mut made) = (Code::default(), BTreeMap::new());
    for (number, place, text) in log.lines().filter_map(call) {
        if code.range.contains(&place) {
            made.entry(number).or_insert_with(|| text.to_owned());
        }
        code.follow(text);
    }
    made
}

/// Runs the command in the class, and strace in it.
fn seen(class: &Class, folder: &Path, words: &[&str]) -> BTreeMap<i64, String> {
    let log = folder.join("log");
    let strace = ["strace", "-n", "-i", "-o", log.to_str().expect("UTF-8")];
    run(class.command(strace.iter().chain(words)).current_dir(folder)).succeeded();
    let made = made(&fs::read_to_string(&log).expect("a log"));
    assert!(made.len() >= 8, "{words:?} makes few calls of ours: {made:?}");
    made
}

#[test]
fn what_the_library_calls_is_what_it_lists() {
    if Command::new("strace").arg("--version").output().is_err() {
        skip!("no strace");
    }
    let (folder, listed) = (product::folder(), listed());
    cold::make(&folder.path().join("data"), 3 << 20).expect("a file");
    let copy = "head -c 1000000 data >copy && exec tar -cf archive.tar data copy";
    let maps = "import mmap, os, socket; file = open('data', 'rb')
m = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); sum(m[::4096]); m.close()
a, b = socket.socketpair(); a.send(b'x'); b.recv(1); os.stat('data'); os.system('true')";
    let mut all = BTreeMap::new();
    // A limit that is met, and one that is not; the kernel's account, and prediction.
    for class in [Class::new("8M"), Class::new("1000M"), Class::estimated("8M", "predict")] {
        for words in [
            &["tar", "-cf", "archive.tar", "data"][..],
            &["sh", "-c", copy],
            &["python3", "-c", maps],
        ] {
            all.append(&mut seen(&class, folder.path(), words));
        }
    }
    let unlisted: Vec<_> = all.iter().filter(|(number, _)| !listed.contains(number)).collect();
    assert!(unlisted.is_empty(), "not listed: {unlisted:?}");
    // That the test sees at all: what any regulated process does.
    for number in [libc::SYS_futex, libc::SYS_openat, libc::SYS_getpid, libc::SYS_fstat] {
        assert!(all.contains_key(&number), "{number} was not seen: {all:?}");
    }
    assert!(all.len() >= 15, "{all:?}");
}

/// A program that is killed for one system call is killed for no call of ours: where it ends well alone, it does in a class.
#[test]
fn no_program_is_killed_for_a_call_of_ours() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = compiler.compile("forbidden.c");
    fs::write(folder.path().join("data"), vec![7; 600_000]).expect("room");
    fs::set_permissions(folder.path().join("data"), Permissions::from_mode(0o666)).expect("ours");
    let class = Class::new("50M");
    let mut unharmed = 0;
    for number in listed() {
        let words = [program.to_str().expect("UTF-8").to_owned(), number.to_string()];
        let mut bare = product::as_user(&words[0]);
        if run(bare.arg(&words[1]).current_dir(folder.path())).status == Some(0) {
            let held = run(class.command(&words).current_dir(folder.path()));
            assert_eq!(
                (held.status, held.signal),
                (Some(0), None),
                "without call {number}: {held:?}"
            );
            unharmed += 1;
        }
    }
    assert!(unharmed >= 15, "{unharmed} calls can be done without");
}
