//! `--per-child`: each child of a command has the limits for itself, and `status` shows it apart.

use std::path::Path;
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, until};
use discnice_tests::{cold, product};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// What each child reads, and the limit a second.
const SIZE: u64 = 8 * MIB;
const RATE: &str = "8M";

/// The classes of children of the members of a class.
fn children(class: &Class) -> Vec<Value> {
    let status = run(&mut product::discnice(["status", "--json"])).succeeded();
    let status: Value = serde_json::from_slice(&status.output).expect("JSON");
    let every = status["classes"].as_array().expect("classes").iter();
    every.filter(|one| one["child_of"] == class.name()).cloned().collect()
}

/// The most that each of two children was charged, by its class's name, and how long all of it took.
fn two_readers(class: &Class, words: &[&str]) -> (Vec<(String, u64)>, Duration) {
    let begun = Instant::now();
    let mut job = Group::start_silent(&mut class.command(words));
    let mut read: Vec<(String, u64)> = Vec::new();
    until("the command ends", || {
        for one in children(class) {
            let (name, bytes) = (one["name"].to_string(), one["read"].as_u64().unwrap_or(0));
            match read.iter_mut().find(|(known, _)| *known == name) {
                Some((_, most)) => *most = bytes.max(*most),
                None => read.push((name, bytes)),
            }
        }
        job.try_wait().expect("it is ours").is_some()
    });
    (read, begun.elapsed())
}

fn files(folder: &Path) -> [String; 2] {
    ["a", "b"].map(|name| {
        let path = folder.join(name);
        cold::make(&path, SIZE as usize).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    })
}

fn apart(class: &Class) {
    run(&mut class.command(["true"])).succeeded();
    let set = ["class", "set", class.name(), "--per-child"];
    run(&mut product::discnice(set)).succeeded();
}

//= discnice/5.1-separate-children
#[test]
fn each_child_has_the_limit_for_itself() {
    // Readers that move little between two looks, however late these are.
    let reads = "def read(path):\n\
                 \x20   file = open(path, 'rb', 0)\n\
                 \x20   while file.read(65536): time.sleep(0.002)\n";
    let one = format!("import sys, time\n{reads}read(sys.argv[1])");
    let job = |file: &str| format!("(/usr/bin/python3 -c \"{one}\" \"{file}\"; :) &");
    let shell = format!("{} {} wait", job("$0"), job("$1"));
    // Of multiprocessing, prefork servers and the like nothing is ever executed.
    let forks = format!(
        "import os, sys, time\n{reads}\
         for path in sys.argv[1:]:\n\
         \x20   if os.fork() == 0:\n\
         \x20       time.sleep(0.2); read(path); time.sleep(0.2); os._exit(0)\n\
         os.wait(); os.wait()"
    );
    for command in [["sh", "-c", &shell], ["/usr/bin/python3", "-c", &forks]] {
        let folder = product::folder();
        let [a, b] = files(folder.path());
        let class = Class::new(RATE);
        apart(&class);
        let (read, took) = two_readers(&class, &[&command[..], &[&a, &b]].concat());
        assert_eq!(read.len(), 2, "{command:?}: {read:?}");
        assert!(read.iter().all(|(_, bytes)| *bytes >= SIZE / 2), "{command:?}: {read:?}");
        let shared = Duration::from_secs(2 * SIZE / (8 * MIB));
        assert!(took > shared / 3, "{command:?}: not held: {took:?}");
        // What its children read is not the parent's when it waits for them, but for what one read after the last look.
        assert!(class.charged().0 < SIZE, "{command:?}: {:#}", class.show());
        until("their classes go with them", || children(&class).is_empty());
    }
}

/// A class that gives way is looked at each time that the others are, which may be just before the class of a child.
#[test]
fn what_children_read_is_not_their_parents_while_it_may_give_way() {
    const ROUNDS: u64 = 8;
    let folder = product::folder();
    let [a, _] = files(folder.path());
    let class = Class::new("200M");
    apart(&class);
    run(&mut product::discnice(["class", "set", class.name(), "--when", "busy"])).succeeded();
    // Each child is there for a while before it reads and after: what is not seen of it is its parent's.
    let script = format!(
        "import mmap, os, sys, time\n\
         for _ in range({ROUNDS}):\n\
         \x20   if os.fork() == 0:\n\
         \x20       time.sleep(0.2)\n\
         \x20       file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\n\
         \x20       memory = mmap.mmap(-1, 65536)\n\
         \x20       while os.readv(file, [memory]): pass\n\
         \x20       time.sleep(1)\n\
         \x20       os._exit(0)\n\
         \x20   os.wait()"
    );
    run(&mut class.command(["/usr/bin/python3", "-c", &script, &a])).succeeded();
    let own = class.charged().0;
    assert!(own < SIZE, "{own} of {}: {:#}", ROUNDS * SIZE, class.show());
}

#[test]
fn what_a_child_starts_shares_with_it_and_changes_reach_it() {
    let class = Class::new("1M");
    apart(&class);
    let shell = "(sleep 0.4; sleep 60 & sleep 60 & wait); :";
    let job = Group::start_silent(&mut class.command(["sh", "-c", shell]));
    let members = |one: &Value| one["members"].as_array().map_or(0, Vec::len);
    until("one class has the child and both of its own", || {
        children(&class).iter().map(members).eq([3])
    });
    let shown = class.show();
    assert!(shown["per_child"] == true && members(&shown) == 1, "{shown:#}");
    let status = run(&mut product::discnice(["status"])).succeeded().text();
    assert!(status.contains("1 MiB/s each child"), "{status}");
    let of = format!("a child of class {}, with these limits for itself", class.name());
    assert!(status.contains(&of), "{status}");
    let set = ["class", "set", class.name(), "--disk", "3M"];
    run(&mut product::discnice(set)).succeeded();
    until("they have the new limit", || children(&class)[0]["limit_total"] == 3 * MIB);
    run(&mut product::discnice(["pause", class.name()])).succeeded();
    until("they stand, too", || children(&class)[0]["paused"] == true);
    drop(job);
}
