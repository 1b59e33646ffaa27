//! A forked child has its parent's open files, and copies of what we know of them: it leaves them alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use discnice_tests::bare::Place;
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

const SIZE: u64 = 16 << 20;
/// The parent forks when it has read so much.
const BYTES: &str = "1048576";

/// A file that is not cached, and about which the kernel answers the user of the product.
fn data(folder: &Path) {
    let path = folder.join("data");
    cold::make(&path, usize::try_from(SIZE).expect("it fits")).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("our file");
}

/// A class with these limits that removes from the cache what it has read.
fn protecting(disk: &str) -> Class {
    let class = Class::new(disk);
    run(&mut class.command(["true"])).succeeded();
    let set = ["class", "set", class.name(), "--cache", "protect"];
    run(&mut product::discnice(set)).succeeded();
    class
}

#[test]
fn a_child_that_ends_leaves_open_files_alone() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("inherited.c");
    let words = [guest.to_str().expect("UTF-8"), "data"];
    let bare = Place::default().run(product::as_user(words[0]).arg(words[1]), data).succeeded();
    let class = protecting("4M");
    let limits = ["class", "set", class.name(), "--net", "200K", "--net-loopback"];
    run(&mut product::discnice(limits)).succeeded();
    let held = Place::default().run(&mut class.command(words), data);
    assert_eq!(held, bare);
}

#[test]
fn what_is_read_ahead_stays_for_the_parent_of_a_child_that_ends() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("inherited.c");
    let class = protecting("32M");
    let words = [guest.to_str().expect("UTF-8"), "data", BYTES];
    let before = class.charged().0;
    Place::default().run(&mut class.command(words), data).succeeded();
    let read = class.charged().0 - before;
    assert!(read <= SIZE + SIZE / 10, "{read} of {SIZE} bytes");
}
