//! Members may be killed at any moment, and shared memory may be anything: the others go on, with
//! the right results, and none hangs.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::process::{kill_group, run, send, wait};
use discnice_tests::segment::Segment;
use discnice_tests::{cold, product, skip};

/// How many members are killed: by default so many, or as many as this variable says.
const KILLS: usize = 100;
const KILLS_VARIABLE: &str = "DISCNICE_TEST_KILLS";
/// Longest time for which harm is done to a job that takes a few seconds.
const HARM: Duration = Duration::from_secs(15);

/// Marsaglia's xorshift64: reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn start(command: &mut Command, folder: &Path) -> Child {
    let command = command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.process_group(0).spawn().expect("it starts")
}

/// Members that never end: a reader with page cache misses, writers, starters of processes.
const WORK: [&str; 4] = [
    "while :; do dd if=data of=/dev/null bs=64k iflag=direct status=none; done",
    "while :; do dd if=/dev/zero of=out.$$ bs=64k count=20 status=none; rm out.$$; done",
    "while :; do cat data > copy.$$; rm copy.$$; done",
    "while :; do cp data other.$$; done",
];

#[test]
fn members_killed_at_any_moment_hold_no_other_up() {
    let kills = std::env::var(KILLS_VARIABLE).ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let folder = product::folder();
    cold::make(&folder.path().join("data"), 4 << 20).expect("a file");
    let limit = 8 << 20;
    let class = Class::new("8M");
    let mut random = Random(88_172_645_463_325_252);
    let begin = |random: &mut Random| {
        let work = WORK[random.below(WORK.len() as u64) as usize];
        start(&mut class.command(["sh", "-c", work]), folder.path())
    };
    let mut members: Vec<Child> = (0..8).map(|_| begin(&mut random)).collect();
    std::thread::sleep(Duration::from_millis(300));
    let (begun, before) = (Instant::now(), class.charged());
    for _ in 0..kills {
        std::thread::sleep(Duration::from_micros(random.below(80_000)));
        let victim = random.below(members.len() as u64) as usize;
        if random.below(2) == 0 {
            kill_group(members[victim].id());
        } else {
            // The shell alone: its child goes on as an orphan until the group is killed below.
            send(members[victim].id().cast_signed(), libc::SIGKILL);
        }
        members[victim].wait().expect("our child");
        kill_group(members[victim].id());
        members[victim] = begin(&mut random);
    }
    let (after, took) = (class.charged(), begun.elapsed());
    for member in &mut members {
        kill_group(member.id());
        member.wait().expect("our child");
    }
    let moved = (after.0 + after.1 - before.0 - before.1) as f64;
    let rate = moved / took.as_secs_f64();
    let (least, most) = (0.5 * f64::from(limit), 1.05 * f64::from(limit));
    println!("{kills} kills in {took:?}: {rate:.0} B/s of {limit}");
    assert!((least..most).contains(&rate), "{rate} B/s after {kills} kills in {took:?}");

    // None hangs on what the dead left behind: a newcomer gets its share at once.
    let mut command = class.command(["cp", "data", "late"]);
    let begun = Instant::now();
    wait(&mut start(&mut command, folder.path()), &command);
    assert!(begun.elapsed() < Duration::from_secs(6), "a newcomer took {:?}", begun.elapsed());
    assert_eq!(
        fs::read(folder.path().join("late")).ok(),
        fs::read(folder.path().join("data")).ok()
    );
}

/// Copies in many ways while `harm` is done to the class's memory; all must end well.
fn survives(harm: impl Fn(&Segment, u64)) {
    let folder = product::folder();
    cold::make(&folder.path().join("data"), 3 << 20).expect("a file");
    cold::make_text(&folder.path().join("text"), 20_000).expect("a file");
    let script = "set -e
        for round in 1 2 3; do
            cat data > a; cmp a data; cp data b; cmp b data
            dd if=data of=c bs=100k status=none; cmp c data
            dd if=data of=d bs=1M oflag=append conv=notrunc status=none; cmp d data; rm d
            sort text > e; sort -c e; tar cf f data text; tar xOf f data | cmp - data
            (grep -c words text; wc -l < text) | sort -u | wc -l
        done
        exec echo done";
    let class = Class::new("40M");
    let expected =
        run(product::as_user("sh").args(["-c", script]).current_dir(folder.path())).succeeded();
    let output = tempfile::NamedTempFile::new().expect("a file");
    let handle = output.reopen().expect("a file");
    let mut command = class.command(["sh", "-c", script]);
    let mut child = command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(handle.try_clone().expect("a descriptor"))
        .stderr(handle)
        .process_group(0)
        .spawn()
        .expect("it starts");
    // The segment is there as soon as the command is, unless it has ended already.
    let segment = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Segment::of(class.name())
    });
    let segment = segment.expect("the class's segment");
    // What is written last may say that the class is paused, for good, so harm is done until the job has ended.
    let (mut round, begun) = (0, Instant::now());
    while child.try_wait().expect("our child").is_none() && begun.elapsed() < HARM {
        harm(&segment, round);
        round += 1;
        std::thread::sleep(Duration::from_millis(3));
    }
    if child.try_wait().expect("our child").is_none() {
        // Beside a busy machine it may not have ended; nothing pauses it, or holds it, by zeroes.
        segment.fill(|| 0);
    }
    let status = wait(&mut child, &command);
    let printed = fs::read(output.path()).expect("a file");
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&printed));
    // Harm that was done before the command began is told by `run`, which starts it all the same.
    let lines = printed.split_inclusive(|byte| *byte == b'\n');
    let printed =
        lines.filter(|line| !line.starts_with(b"discnice: ")).collect::<Vec<_>>().concat();
    assert_eq!(printed, expected.output, "{}", String::from_utf8_lossy(&printed));
    assert!(round > 1, "the harm must have been done while it ran");
    segment.remove();
}

#[test]
fn shared_memory_full_of_random_bytes() {
    survives(|segment, round| {
        let mut random = Random(round * 7919 + 1);
        segment.fill(|| random.below(u64::MAX));
    });
}

#[test]
fn shared_memory_full_of_zeroes_and_ones() {
    survives(|segment, round| segment.fill(|| if round % 2 == 0 { 0 } else { u64::MAX }));
}

#[test]
fn shared_memory_with_single_words_scribbled_over() {
    survives(|segment, round| {
        let mut random = Random(round * 104_729 + 3);
        for _ in 0..50 {
            // The head, with limits and frontiers, more often than the members.
            let at = random.below(if round % 2 == 0 { 460 } else { u64::MAX });
            segment.set(at as usize, random.below(u64::MAX));
        }
    });
}

#[test]
fn shared_memory_removed_while_a_program_runs() {
    survives(|segment, round| {
        if round == 5 {
            segment.remove();
        }
    });
}

/// A container's first process reaps what is left to it.
#[test]
fn as_the_first_process_it_leaves_no_zombies() {
    if run(product::as_user("unshare").args(["-Urpf", "--mount-proc", "true"])).status != Some(0) {
        skip!("no namespaces for ordinary users here");
    }
    let script = "for i in 1 2 3; do (sleep 0.1 &); done; sleep 0.5; cat /proc/[0-9]*/stat | grep -c ') Z'; exit 7";
    let as_first = |script: &str| {
        let mut command = product::as_user("unshare");
        command.args(["-Urpf", "--mount-proc"]).arg(product::program());
        run(command.args(["run", "--summary", "--disk", "50M", "--", "sh", "-c", script]))
    };
    let ended = as_first(script);
    assert_eq!((ended.text().trim(), ended.status), ("0", Some(7)), "{ended:?}");
    let killed = as_first("kill -9 $$");
    assert_eq!(killed.status, Some(128 + 9), "{killed:?}");
    let passed_on = as_first("trap 'exit 5' TERM; kill -TERM 1; while :; do sleep 0.01; done");
    assert_eq!(passed_on.status, Some(5), "{passed_on:?}");
}

/// Both are process 1 where they are: the second one takes the slot of the first.
#[test]
fn a_process_that_loses_its_slot_to_one_of_another_numbering_is_not_charged_twice() {
    if run(product::as_user("unshare").args(["-Urpf", "true"])).status != Some(0) {
        skip!("no namespaces for ordinary users here");
    }
    const SIZE: usize = 32 << 20;
    let folder = product::folder();
    let file = folder.path().join("data");
    cold::make(&file, SIZE).expect("a file");
    let read = "import mmap, os, sys\n\
                file, memory = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20)\n\
                while os.readv(file, [memory]): pass\n\
                print(flush=True); sys.stdin.readline()\n\
                os.preadv(file, [memory], 0)";
    let script = "mkfifo go; unshare -Urpf /usr/bin/python3 -c \"$1\" \"$0\" <go | { exec 3>go; read line; \
                  unshare -Urpf true; echo >&3; cat; }";
    let class = Class::new("200M");
    let words = ["sh", "-c", script, file.to_str().expect("UTF-8"), read];
    run(class.run_by("preload").args(words).current_dir(folder.path())).succeeded();
    let (charged, most) = (class.charged().0, (SIZE + SIZE / 2) as u64);
    assert!((SIZE as u64..most).contains(&charged), "{charged}: {:#}", class.show());
}
