//! `discnice cached` and `discnice order` on real files, with good and bad input.

mod graybox_support;

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use graybox_support::{Scratch, discnice, run, run_as_nobody};

//= gray-box/4.1.1-probe
#[test]
fn cached_tells_hot_from_cold() {
    let scratch = Scratch::new();
    scratch.write("hot", &[1; 300_000]);
    scratch.write("cold", &[2; 300_000]);
    scratch.write("empty", b"");
    scratch.make_cold("cold");
    let out = run(&mut scratch.discnice(["cached", "--json", "hot", "cold", "empty"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    let seen: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let fraction = |index: usize| seen[index]["cached_fraction"].as_f64().unwrap();
    assert_eq!((fraction(0), fraction(1), fraction(2)), (1.0, 0.0, 1.0));
    assert_eq!(seen[0]["size"], 300_000);
    assert_eq!(seen[0]["cached_bytes"], 300_000);
    assert_eq!(seen[0]["means"], "cachestat");
    assert_eq!(seen[0]["probing"]["pages_read"], 0);
    assert_eq!(seen[1]["regions"][0]["length"], 300_000);
}

#[test]
fn bad_files_cost_a_line_each_and_the_rest_is_done() {
    let scratch = Scratch::new();
    scratch.write("good", &[1; 5000]);
    fs::create_dir(scratch.path("dir")).unwrap();
    let fifo = scratch.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let files = ["gone", "good", "dir", "fifo", "/dev/null", "good"];
    let cached = run(scratch.discnice(["cached"]).args(files));
    let order = run(scratch.discnice(["order"]).args(files));
    for out in [&cached, &order] {
        assert_eq!(out.status, 1);
        let lines: Vec<&str> = out.stderr.lines().collect();
        assert_eq!(
            lines,
            [
                "discnice: gone: No such file or directory",
                "discnice: dir: Is a directory",
                "discnice: fifo: Not a regular file",
                "discnice: /dev/null: Not a regular file",
            ]
        );
    }
    assert_eq!(order.stdout, "good\ngood\n");
    assert_eq!(cached.stdout.lines().filter(|line| line.ends_with("good")).count(), 2);
}

#[test]
fn a_file_closed_to_us_or_gone_costs_a_line() {
    let scratch = Scratch::new();
    scratch.write("good", &[1; 5000]);
    fs::create_dir(scratch.path("dir")).unwrap();
    for (target, link) in [("nowhere", "dangling"), ("loop", "loop"), ("good", "linked")] {
        std::os::unix::fs::symlink(target, scratch.path(link)).unwrap();
    }
    std::os::unix::net::UnixListener::bind(scratch.path("socket")).unwrap();
    scratch.write("closed", b"secret");
    let none = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(scratch.path("closed"), none).unwrap();
    let files = ["dangling", "loop", "good/below", "socket", "two\nlines", "", "linked"];
    for how in [&["cached"][..], &["order", "--cached"], &["order", "--layout"], &["order"]] {
        let out = run(scratch.discnice(how).args(files));
        let lines: Vec<&str> = out.stderr.lines().collect();
        assert_eq!(
            lines,
            [
                "discnice: dangling: No such file or directory",
                "discnice: loop: Too many levels of symbolic links",
                "discnice: good/below: Not a directory",
                "discnice: socket: Not a regular file",
                r#"discnice: "two\nlines": No such file or directory"#,
                r#"discnice: "": No such file or directory"#,
            ],
            "{how:?}"
        );
        assert_eq!(out.status, 1, "{how:?}");
        assert!(out.stdout.ends_with("linked\n"), "{how:?}: {}", out.stdout);
    }
    for file in &files[..4] {
        let out = run(scratch.discnice(["order", "--cat"]).arg(file));
        assert_eq!((out.status, out.stdout.as_str()), (1, ""), "{file}");
        assert_eq!(out.stderr.lines().count(), 1, "{file}: {}", out.stderr);
    }
    if scratch.can_become_nobody() {
        let out = run_as_nobody(&mut scratch.discnice(["order", "closed", "good"]));
        assert_eq!((out.status, out.stdout.as_str()), (1, "good\n"));
        assert_eq!(out.stderr, "discnice: closed: Permission denied\n");
    }
}

#[test]
fn no_input_is_no_output() {
    let scratch = Scratch::new();
    for words in [&["order"][..], &["order", "-0", "--cached"], &["order", "--layout"]] {
        for input in ["", "\n\n"] {
            scratch.write(
                "input",
                input.replace('\n', if words.contains(&"-0") { "\0" } else { "\n" }).as_bytes(),
            );
            let input = fs::File::open(scratch.path("input")).unwrap();
            let out = run(scratch.discnice(words).stdin(input));
            assert_eq!((out.status, out.stdout + &out.stderr), (0, String::new()), "{words:?}");
        }
    }
    scratch.write("empty", b"");
    let out = run(&mut scratch.discnice(["order", "--cat", "empty"]));
    assert_eq!((out.status, out.stdout + &out.stderr), (0, String::new()));
}

#[test]
fn usage_errors_are_125() {
    let scratch = Scratch::new();
    for words in [
        &["cached"][..],
        &["order", "--cat"],
        &["order", "--cached", "--layout", "x"],
        &["order", "--cat", "--align", "0", "x"],
        &["order", "--window", "0"],
        &["cached", "--grain", "5Q", "x"],
    ] {
        let out = run(&mut scratch.discnice(words));
        assert_eq!(out.status, 125, "{words:?}");
        assert!(out.stdout.is_empty() && !out.stderr.is_empty(), "{words:?}");
    }
}

//= gray-box/4.1.4-small-files
#[test]
fn foreign_files_are_probed_and_small_ones_are_not_touched() {
    let scratch = Scratch::new();
    if scratch.can_become_nobody() {
        probe_as_nobody(&scratch);
    }
}

fn probe_as_nobody(scratch: &Scratch) {
    scratch.write("hot", &[1; 300_000]);
    scratch.write("cold", &[2; 300_000]);
    scratch.write("small", b"few bytes");
    scratch.make_cold("cold");
    scratch.make_cold("small");
    let out = run_as_nobody(&mut scratch.discnice(["cached", "--json", "hot", "cold", "small"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    let seen: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!((&seen[0]["means"], &seen[0]["cached_fraction"]), (&"probe".into(), &1.0.into()));
    assert_eq!((&seen[1]["means"], &seen[1]["cached_fraction"]), (&"probe".into(), &0.0.into()));
    assert_eq!(seen[1]["probing"]["pages_read"], 1, "a miss costs one page");
    assert_eq!(seen[2]["means"], "unknown");
    assert!(seen[2]["cached_fraction"].is_null());
    // What really is cached now, asked as the owner.
    let out = run(&mut scratch.discnice(["cached", "--json", "cold", "small"]));
    let truth: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(truth[0]["cached_bytes"], 4096);
    assert_eq!(truth[1]["cached_bytes"], 0);
    // Its one page that is cached now may be the one that is probed.
    scratch.make_cold("cold");
    let order = run_as_nobody(&mut scratch.discnice(["order", "--cached", "small", "cold", "hot"]));
    assert_eq!(order.stdout.lines().next(), Some("hot"));
}

#[test]
fn order_reads_names_of_any_bytes_from_a_stream() {
    let scratch = Scratch::new();
    let odd = std::ffi::OsStr::from_bytes(b"new\nline \xff");
    fs::write(scratch.path("").join(odd), [3; 9000]).unwrap();
    scratch.write("cold", &[2; 300_000]);
    scratch.make_cold("cold");
    let mut child = scratch
        .discnice(["order", "-0", "--cached"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"cold\0new\nline \xff\0").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.stdout, b"new\nline \xff\0cold\0");
}

//= gray-box/4.2.1-order
//= gray-box/4.2.5-other-layouts
#[test]
fn layout_order_is_the_order_on_the_disk() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..20).map(|n| format!("f{}", n * 7 % 20)).collect();
    for name in &names {
        scratch.write(name, &[5; 20_000]);
        fs::File::open(scratch.path(name)).unwrap().sync_all().unwrap();
    }
    let out = run(scratch.discnice(["order", "--layout"]).args(&names));
    let ordered: Vec<&str> = out.stdout.lines().collect();
    let mut places: Vec<Option<u64>> = Vec::new();
    for name in &ordered {
        let file = fs::File::open(scratch.path(name)).unwrap();
        places.push(discnice_graybox::fldc::first_extent(&file));
    }
    assert_eq!(ordered.len(), 20);
    assert!(places.is_sorted(), "{places:?}");
}

//= gray-box/4.1.2-gbp-out
#[test]
fn cat_writes_every_record_once_cached_ones_first() {
    let scratch = Scratch::new();
    let records: Vec<u8> = (0..100_000u32).flat_map(|n| format!("{n:09}\n").into_bytes()).collect();
    scratch.write("data", &records);
    scratch.make_cold("data");
    let file = fs::File::open(scratch.path("data")).unwrap();
    // Bytes 500,000 to 750,000 become cached, and nothing around them.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut [0; 250_000], 500_000).unwrap();
    let out = run(
        &mut scratch.discnice(["order", "--cat", "--align", "10", "--unit", "100000B", "data"])
    );
    assert_eq!(out.status, 0, "{}", out.stderr);
    let mut lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[0], "000050000", "the cached part is not first");
    lines.sort_unstable();
    let sorted: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    assert!(sorted.as_bytes() == records, "bytes were lost or torn");
}

#[test]
fn a_closed_output_is_no_error() {
    let scratch = Scratch::new();
    scratch.write("data", &vec![7; 4 << 20]);
    let script = format!(
        "'{}' order --cat data | head -c 10 >/dev/null; exit ${{PIPESTATUS[0]}}",
        discnice().display()
    );
    let out = run(Command::new("bash").arg("-c").arg(script).current_dir(scratch.path("")));
    assert_eq!((out.status, out.stderr.as_str()), (0, ""));
}

#[test]
fn a_full_output_is_an_error() {
    let scratch = Scratch::new();
    scratch.write("data", &[7; 9000]);
    for words in
        [&["order", "data"][..], &["order", "--cat", "data"], &["cached", "data"], &["--help"]]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = run(scratch.discnice(words).stdout(full));
        let told = "discnice: cannot write to standard output: No space left on device; redirect it to another file or pipe\n";
        assert_eq!((out.status, out.stderr.as_str()), (125, told), "{words:?}");
    }
}

#[test]
fn names_that_cannot_be_read_are_told() {
    let scratch = Scratch::new();
    let folder = fs::File::open(scratch.path("")).unwrap();
    let out = run(scratch.discnice(["order"]).stdin(folder));
    let told =
        "discnice: cannot read names from standard input: Is a directory; give them as FILEs\n";
    assert_eq!((out.status, out.stderr.as_str()), (125, told));
}
