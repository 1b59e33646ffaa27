//! What real programs cause on a cold disk is charged to their class, however they do their I/O.
//!
//! One test, because the kernel's account of this process's children is the measure.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use discnice_tests::class::Class;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

/// Of the kernel's account, this share must be charged.
const SHARE: f64 = 0.95;

/// A program and what it does in a folder with `data` (6 MiB), `text` (60,000 lines), `tree`
/// (60 files), `source.c`, `repository`, `base.db`.
const PROGRAMS: [(&str, &str); 22] = [
    ("cat", "cat data > /dev/null"),
    ("cat", "cat data > out"),
    ("cp", "cp data out"),
    ("cp", "cp -r --reflink=never tree out"),
    ("dd", "dd if=data of=out bs=64k status=none"),
    ("dd", "dd if=data of=out bs=1M iflag=direct oflag=direct status=none"),
    ("tar", "tar cf out tree data"),
    ("grep", "grep -r words tree > /dev/null"),
    ("sort", "sort -S 1M -T . text > out"),
    ("gcc", "gcc -O2 source.c -o out"),
    ("git", "git clone -q --no-hardlinks repository out"),
    ("python3", "python3 -c \"open('out','wb').write(open('data','rb').read())\""),
    (
        "sqlite3",
        "sqlite3 base.db 'select count(*), sum(length(b)) from t; create table u as select * from t;'",
    ),
    ("perl", "perl -ne 'print if /7/' text > out"),
    ("rsync", "rsync -a tree/ out/"),
    ("curl", "curl -s \"file://$PWD/data\" -o out"),
    ("find", "find tree -type f -exec cat {} + > /dev/null"),
    ("awk", "awk '{ n += $1 } END { print n }' text"),
    ("sed", "sed s/line/row/ text > out"),
    ("gzip", "gzip -1 -c text > out"),
    ("xz", "xz -0 -c text > out"),
    ("wc", "wc -l text"),
];

fn is_there(program: &str) -> bool {
    run(product::as_user("sh").args(["-c", &format!("command -v {program}")])).status == Some(0)
}

/// Makes what the programs work on.
fn prepare(folder: &Path) {
    cold::make(&folder.join("data"), 6 << 20).expect("a file");
    cold::make_text(&folder.join("text"), 60_000).expect("a file");
    fs::create_dir(folder.join("tree")).expect("a folder");
    for number in 0..60 {
        cold::make_text(&folder.join(format!("tree/{number}")), 1500).expect("a file");
    }
    let lines: String =
        (0..1500).map(|n| format!("int f{n}(int x) {{ return x * {n} + {n}; }}\n")).collect();
    fs::write(folder.join("source.c"), lines + "int main(void) { return f1(0) - 1; }\n")
        .expect("a file");
    let make = "set -e; export HOME=$PWD
        if command -v git; then git init -q repository; cp tree/* data repository; cd repository
            git add .; git -c user.name=n -c user.email=e commit -qm all; cd ..; fi
        if command -v sqlite3; then sqlite3 base.db 'create table t(a, b);
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
            insert into t select i, randomblob(1000) from n;'; fi
        if test -x /usr/bin/python3; then ln -s /usr/bin/python3 python3; fi";
    run(product::as_user("sh").args(["-c", make]).current_dir(folder)).succeeded();
}

/// Runs the command in its class; returns what was charged and what the kernel says.
fn measure(folder: &Path, script: &str) -> (u64, u64) {
    let _ = fs::remove_dir_all(folder.join("out"));
    let _ = fs::remove_file(folder.join("out"));
    cold::drop_all(folder).expect("our own files");
    let class = Class::new("20M");
    let before = cold::children();
    // The shell is regulated too, and the command its child.
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut command = class.command(["sh", "-c", &format!("{script}; true")]);
    run(command.current_dir(folder).env("PATH", path).env("HOME", folder)).succeeded();
    let after = cold::children();
    let (read, written) = class.charged();
    (read + written, after.0 + after.1 - before.0 - before.1)
}

#[test]
fn real_programs_are_charged_what_they_cause() {
    let folder = product::folder();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("our folder");
    prepare(folder.path());
    let (_, moved) = measure(folder.path(), "cat data > /dev/null");
    if moved < 6 << 20 {
        skip!("the kernel keeps no account of /var/tmp (tmpfs, FUSE)");
    }
    let mut poor = Vec::new();
    for (program, script) in PROGRAMS {
        if !is_there(program) {
            eprintln!("{program} is not installed");
            continue;
        }
        let (charged, caused) = measure(folder.path(), script);
        let share = charged as f64 / caused as f64;
        let line = format!("{share:.3} {charged:>10} of {caused:>10}  {script}");
        println!("{line}");
        assert!(caused > 1 << 20, "not cold, so it shows nothing: {line}");
        if !(SHARE..=2.0 - SHARE).contains(&share) {
            poor.push(line);
        }
    }
    assert!(poor.is_empty(), "charged and caused differ:\n{}", poor.join("\n"));
}
