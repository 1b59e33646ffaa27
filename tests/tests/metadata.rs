//! Calls on names and inodes are held to `--meta-ops`, and counted without it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{class::Class, product, skip};

const FILES: u64 = 600;

fn fill(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    fs::set_permissions(folder, Permissions::from_mode(0o777)).expect("our folder");
    for number in 0..FILES {
        File::create(folder.join(number.to_string())).expect("a file");
    }
}

fn set(class: &Class, operations: &str) {
    run(&mut product::discnice(["class", "set", class.name(), "--meta-ops", operations]))
        .succeeded();
}

#[test]
fn deleting_a_tree_is_held_to_its_rate() {
    let (class, folder) = (Class::new("unlimited"), product::folder());
    let tree = folder.path().join("tree");
    fill(&tree);
    set(&class, "200");
    let begun = Instant::now();
    // The folder itself belongs to another user.
    let script = format!("cd {} && find . -type f -delete", tree.display());
    run(&mut class.command(["sh", "-c", &script])).succeeded();
    let (took, least) = (begun.elapsed(), Duration::from_millis(FILES * 1000 / 200 * 98 / 100));
    assert_eq!(fs::read_dir(&tree).expect("the folder").count(), 0);
    assert!(took > least, "{took:?} for {FILES} files at 200 a second");
    assert!(class.show()["metadata"].as_u64() >= Some(FILES), "{}", class.show());
}

#[test]
fn without_a_limit_operations_are_counted() {
    let (class, folder) = (Class::new("unlimited"), product::folder());
    let tree = folder.path().join("tree");
    fill(&tree);
    // Each entry is asked for by name.
    run(&mut class.command(["ls", "-l", tree.to_str().expect("UTF-8")])).succeeded();
    let counted = class.show()["metadata"].as_u64().expect("a number");
    assert!((FILES..FILES * 8).contains(&counted), "{counted}");
}

/// Ways to look at inodes by name, each an argument of the guest.
const WAYS: &[&str] = &[
    "fts",
    "scandirat",
    "realpath",
    "statfs",
    "statvfs",
    "getxattr",
    "lgetxattr",
    "listxattr",
    "llistxattr",
    "setxattr",
    "lsetxattr",
    "removexattr",
    "lremovexattr",
    "syscall",
    "number-lstat",
    "number-open",
    "number-chmod",
    "number-fchmodat",
    "number-utimensat",
];

#[test]
fn every_way_to_look_at_inodes_by_name_is_counted() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no C compiler") };
    let (guest, tree) = (compiler.compile("inodes.c"), folder.path().join("tree"));
    fill(&tree);
    let mut wrong = Vec::new();
    for way in WAYS {
        let class = Class::new("unlimited");
        let words = [guest.as_os_str(), way.as_ref(), tree.as_os_str()];
        let visited = run(&mut class.command(words)).succeeded().text();
        let visited: u64 = visited.trim().parse().expect("a number");
        assert!(visited >= FILES, "{way}: {visited} files");
        let counted = class.show()["metadata"].as_u64().expect("a number");
        if !(FILES..FILES * 2).contains(&counted) {
            wrong.push((way, counted));
        }
    }
    assert!(wrong.is_empty(), "operations for {FILES} files: {wrong:?}");
}

//= discnice/4.1-degree
#[test]
fn a_change_of_the_limit_reaches_waiting_threads() {
    let (class, folder) = (Class::new("unlimited"), product::folder());
    let tree = folder.path().join("tree");
    fill(&tree);
    set(&class, "1");
    let mut list = class.command(["ls", "-l", tree.to_str().expect("UTF-8")]);
    let begun = Instant::now();
    let child = list.stdout(std::process::Stdio::null()).spawn().expect("ls");
    std::thread::sleep(Duration::from_millis(500));
    set(&class, "unlimited");
    let status = child.wait_with_output().expect("ls").status;
    assert!(status.success());
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}
