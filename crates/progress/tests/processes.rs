//! Polite processes among each other: turns, deaths at any moment, forks, broken shared state.
//!
//! The processes are this test program itself, started with a role in the environment.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_progress::model::Config;
use discnice_progress::testpoint::{Outcome, Settings, configure, testpoint};
use discnice_units::Nanos;

const PRIORITY: &str = "DISCNICE_TEST_PRIORITY";
const ROLE: &str = "DISCNICE_TEST_ROLE";

/// What the started processes do, in the place of the test with the name that they are started by.
fn work() -> ! {
    // Turns are tested here; other users of the machine must not suspend the worker.
    let config = Config { slack: 9.9, probation: Nanos(0), ..Config::default() };
    configure(Settings { config, ..Settings::default() }).expect("the first call");
    if let Some(priority) = std::env::var(PRIORITY).ok().and_then(|text| text.parse().ok()) {
        discnice_progress::testpoint::set_priority(priority);
    }
    let mut done = 0.0;
    let mut full = 0;
    loop {
        done += (0..20_000u64).fold(1.0, |sum, i| sum + f64::from(i as u32 & 1) * 1e-9);
        if testpoint(0, &[done]) != Outcome::TooSoon {
            full += 1;
            println!("turn {full}");
            discnice_progress::testpoint::flush();
        }
    }
}

fn start(directory: &Path) -> Child {
    start_with_priority(directory, 100)
}

fn start_with_priority(directory: &Path, priority: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "two_take_turns", "--nocapture"])
        .env(ROLE, "worker")
        .env(PRIORITY, priority.to_string())
        .env("XDG_RUNTIME_DIR", directory.join("run"))
        .env("XDG_STATE_HOME", directory.join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn scene() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("run")).unwrap();
    directory
}

/// The longest gap between turns in the next `turns` turns of a child.
fn longest_gap(child: &mut Child, turns: usize) -> Duration {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut longest = Duration::ZERO;
    for _ in 0..turns {
        let before = Instant::now();
        lines.find(|line| line.starts_with("turn")).expect("the worker lives");
        longest = longest.max(before.elapsed());
    }
    longest
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

//= ms-manners/7.1-supervisor
//= ms-manners/7.1-priority
//= ms-manners/8-priority-by-need
#[test]
fn a_higher_priority_gets_more_time() {
    let scene = scene();
    let mut favoured = start_with_priority(scene.path(), 300);
    let other = start_with_priority(scene.path(), 100);
    longest_gap(&mut favoured, 45);
    let ticks = |child: &Child| discnice_sys::procfs::stat(child.id()).unwrap().cpu_ticks as f64;
    let times = ticks(&favoured) / ticks(&other).max(1.0);
    end(favoured);
    end(other);
    // Three times; what both ran before they had a seat counts alike.
    assert!((1.8..4.5).contains(&times), "{times}");
}

//= ms-manners/7.1-supervisor
/// 20 kills by default; `DISCNICE_KILLS=200` for the full number.
#[test]
fn killed_at_random_moments_no_thread_waits_and_no_target_is_torn() {
    let kills = std::env::var("DISCNICE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let scene = scene();
    let survivor = start(scene.path());
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for _ in 0..kills {
        let victim = start(scene.path());
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_millis(20 + random % 350));
        end(victim);
    }
    let mut survivor = survivor;
    let gap = longest_gap(&mut survivor, 20);
    assert!(gap < Duration::from_secs(2), "waited {gap:?} for the dead");
    end(survivor);
    let targets = scene.path().join("state/discnice/targets");
    assert_eq!(
        discnice_progress::testpoint::store::set_aside_files(&targets),
        [] as [std::path::PathBuf; 0]
    );
    let files: Vec<_> = fs::read_dir(&targets).unwrap().map(|e| e.unwrap().path()).collect();
    let whole = files.iter().filter(|f| f.extension().is_some_and(|e| e == "targets")).count();
    assert_eq!(whole, 1, "{files:?}");
    // The next run reads the file without setting it aside.
    let mut again = start(scene.path());
    longest_gap(&mut again, 2);
    end(again);
    assert!(discnice_progress::testpoint::store::set_aside_files(&targets).is_empty());
}

//= ms-manners/4.5-one-at-a-time
#[test]
fn two_take_turns() {
    if std::env::var_os(ROLE).is_some() {
        work();
    }
    let scene = scene();
    let (mut one, mut two) = (start(scene.path()), start(scene.path()));
    let gaps = (longest_gap(&mut one, 12), longest_gap(&mut two, 12));
    end(one);
    end(two);
    assert!(gaps.0 < Duration::from_secs(3) && gaps.1 < Duration::from_secs(3), "{gaps:?}");
}

//= ms-manners/7.1-hung
/// A stopped process may hold the lock or the turn; others go on after the hung threshold at most.
#[test]
fn a_stopped_process_is_passed_over() {
    let scene = scene();
    let (mut one, two) = (start(scene.path()), start(scene.path()));
    std::thread::sleep(Duration::from_millis(700));
    let stop = |signal: &str| {
        let status = Command::new("kill").args([signal, &two.id().to_string()]).status();
        assert!(status.unwrap().success());
    };
    stop("-STOP");
    let gap = longest_gap(&mut one, 40);
    stop("-CONT");
    end(one);
    end(two);
    assert!(gap < Duration::from_secs(13), "{gap:?}");
}

#[test]
fn broken_shared_memory_leaves_the_job_running() {
    for broken in [&b"short"[..], &[0xff; 64 + 64 * 256][..], b""] {
        let scene = scene();
        fs::create_dir(scene.path().join("run/discnice")).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(scene.path().join("run/discnice"), private).unwrap();
        fs::write(scene.path().join("run/discnice/seats"), broken).unwrap();
        let mut child = start(scene.path());
        assert!(longest_gap(&mut child, 5) < Duration::from_secs(3));
        end(child);
    }
}

#[test]
fn without_any_directory_the_job_still_runs() {
    let nowhere = Path::new("/proc/nowhere");
    let mut child = start(nowhere);
    assert!(longest_gap(&mut child, 5) < Duration::from_secs(3));
    end(child);
}

//= ms-manners/4.1-frequency
//= ms-manners/7.1-lightweight
#[test]
fn calls_in_rapid_succession_return_at_once() {
    let settings = Settings { targets: None, take_turns: false, ..Settings::default() };
    let interval = Duration::from_nanos(settings.interval.0);
    assert!(interval <= Duration::from_millis(300), "testpoints come every few hundred ms");
    configure(settings).expect("the only test that makes testpoints in this process");
    let begun = Instant::now();
    let outcomes: Vec<_> = (0..100_000).map(|i| testpoint(0, &[f64::from(i)])).collect();
    // More than one only if that took longer than an interval.
    let looked = outcomes.iter().filter(|outcome| **outcome != Outcome::TooSoon).count();
    let intervals = begun.elapsed().as_nanos() / interval.as_nanos();
    assert!(looked >= 1 && looked as u128 <= intervals + 1, "{looked} in {intervals} intervals");
}
