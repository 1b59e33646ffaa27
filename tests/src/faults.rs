//! Which system calls fail with what, and what came of it.

use std::fs;
use std::time::Instant;

use crate::failing::{Fault, Scene, Which};
use crate::process::Outcome;
use crate::together;

/// The status of `discnice` after an error of its own.
pub const OURS: i32 = 125;
/// Its status if the command cannot be executed.
pub const NOT_EXECUTABLE: i32 = 126;

/// The numbers of system calls are below this.
const CALLS: i64 = 512;

/// So many scenes are played at once: a case mostly waits.
const SCENES: usize = 3;

/// The scenes in which cases are tried.
///
/// # Errors
/// What is missing.
pub fn scenes() -> Result<Vec<Scene>, String> {
    (0..SCENES).map(|_| Scene::new()).collect()
}

/// Says which calls are to fail: `all`, or one case as it is printed when it goes wrong, as `ptrace From(4)`.
const CHOICE: &str = "DISCNICE_INJECT";

/// Whether all of them are to fail.
#[must_use]
pub fn is_all() -> bool {
    std::env::var_os(CHOICE).is_some_and(|value| value == "all")
}

/// The only case that is to be tried, if one is named.
fn only() -> Option<Fault> {
    let choice = std::env::var(CHOICE).ok().filter(|choice| !["", "all"].contains(&&**choice))?;
    Some(parse(&choice).unwrap_or_else(|| panic!("{CHOICE}={choice} is no case")))
}

fn parse(case: &str) -> Option<Fault> {
    let (called, which) = case.split_once(' ')?;
    let (which, number) = which.strip_suffix(')')?.split_once('(')?;
    let number = number.parse().ok()?;
    let which = match which {
        "One" => Which::One(number),
        "From" => Which::From(number),
        _ => return None,
    };
    let call = (0..CALLS).find(|call| name(*call) == called)?;
    Some(Fault { call, which, errno: errno(call)? })
}

/// The error with which a call fails: one that Linux gives of it, where resources are short or a disk is bad. `None` for
/// calls that cannot fail.
fn errno(call: i64) -> Option<i32> {
    Some(match call {
        libc::SYS_getpid | libc::SYS_getppid | libc::SYS_gettid | libc::SYS_getuid => return None,
        // A wake-up that wakes no thread, and an answer of a supervisor that does not arrive.
        libc::SYS_futex | libc::SYS_ioctl => return None,
        libc::SYS_clock_gettime | libc::SYS_sched_yield => return None,
        libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid | libc::SYS_umask => return None,
        libc::SYS_set_tid_address | libc::SYS_rseq | libc::SYS_set_robust_list => return None,
        libc::SYS_open | libc::SYS_openat | libc::SYS_socket | libc::SYS_pipe2 => libc::EMFILE,
        libc::SYS_eventfd2 | libc::SYS_epoll_create1 | libc::SYS_pidfd_open => libc::EMFILE,
        libc::SYS_dup | libc::SYS_dup3 | libc::SYS_fcntl | libc::SYS_accept4 => libc::EMFILE,
        libc::SYS_timerfd_create | libc::SYS_signalfd4 | libc::SYS_openat2 => libc::EMFILE,
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => libc::EAGAIN,
        libc::SYS_timer_create => libc::EAGAIN,
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_getdents64 => libc::EIO,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs => libc::EIO,
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_mkdir | libc::SYS_mkdirat => libc::ENOSPC,
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => libc::ENOSPC,
        libc::SYS_fallocate | libc::SYS_copy_file_range | libc::SYS_shmget => libc::ENOSPC,
        libc::SYS_connect => libc::ECONNREFUSED,
        libc::SYS_sendto | libc::SYS_recvfrom => libc::ECONNRESET,
        libc::SYS_ptrace => libc::ESRCH,
        // What it interrupts is done all the same, or done again.
        libc::SYS_close | libc::SYS_nanosleep | libc::SYS_clock_nanosleep => libc::EINTR,
        libc::SYS_poll | libc::SYS_ppoll | libc::SYS_wait4 => libc::EINTR,
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => libc::EINTR,
        libc::SYS_rt_sigtimedwait => libc::EINTR,
        libc::SYS_getrandom | libc::SYS_memfd_create | libc::SYS_seccomp => libc::ENOSYS,
        libc::SYS_prctl | libc::SYS_prlimit64 | libc::SYS_setrlimit => libc::EPERM,
        libc::SYS_setpriority | libc::SYS_ioprio_set | libc::SYS_kill => libc::EPERM,
        libc::SYS_process_vm_readv | libc::SYS_sched_setattr => libc::EPERM,
        libc::SYS_flock => libc::ENOLCK,
        _ => libc::ENOMEM,
    })
}

/// Calls after which one does not go on but waits or tries again, for ever if they fail for ever.
const ONLY_ONCE: [i64; 11] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_close,
];

/// How many faults are tried of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first of each call, of a run that takes long.
    First,
    /// As the first, and those by which policyd and the program are started, held and let go; and of all of them a sample: policyd
    /// looks at what it holds a thousand times a second.
    Sample,
    /// The first and the last, and all of them.
    Both,
}

/// Of a call that is made more often than that because the run makes it for as long as it lasts, so many fail, evenly spread.
const MOST: u64 = 200;

/// Of policyd, so many of these calls are always tried, once and for good: as many calls of ptrace(2) stop a thread and let it go
/// (`PTRACE_SEIZE`, `PTRACE_INTERRUPT`, `PTRACE_PEEKUSER`, `PTRACE_DETACH`), and fewer of execve(2) start the programs.
const FIRST: u64 = 4;
const WHOLE: [i64; 2] = [libc::SYS_ptrace, libc::SYS_execve];

/// Of a call that is made so often, those that are to fail.
fn which(call: i64, times: u64, depth: Depth) -> Vec<Which> {
    let whole = depth == Depth::Sample && WHOLE.contains(&call);
    let once: Vec<u64> = match depth {
        Depth::Sample if is_all() && times > MOST => {
            (0..MOST).map(|step| 1 + step * (times - 1) / (MOST - 1)).collect()
        }
        _ if is_all() => (1..=times).collect(),
        Depth::Both if times > 1 => vec![1, times],
        _ if whole => (1..=times.min(FIRST)).collect(),
        _ => vec![1],
    };
    let for_good = |number: &u64| {
        !ONLY_ONCE.contains(&call) && (is_all() || whole || depth == Depth::Both && *number == 1)
    };
    let from: Vec<Which> = once.iter().copied().filter(for_good).map(Which::From).collect();
    once.into_iter().map(Which::One).chain(from).collect()
}

/// All faults to be tried of the run that was traced last in this scene.
///
/// # Panics
/// Nothing was traced, or what is to be tried is no case.
#[must_use]
pub fn faults(scene: &Scene, depth: Depth) -> Vec<Fault> {
    let calls = scene.calls();
    assert!(calls.values().sum::<u64>() > 50, "nothing was traced: {calls:?}");
    if let Some(fault) = only() {
        return vec![fault];
    }
    let of_call = |(call, times): (i64, u64)| {
        let errno = errno(call);
        which(call, times, depth)
            .into_iter()
            .filter_map(move |which| Some(Fault { call, which, errno: errno? }))
    };
    calls.into_iter().flat_map(of_call).collect()
}

/// Tries each of these faults, in one scene after the other or, as a case mostly waits, in several at once, and tells how each
/// went.
#[must_use]
pub fn try_each(
    scenes: &[Scene],
    faults: Vec<Fault>,
    case: impl Fn(&Scene, &Fault) -> Result<(), String> + Sync,
) -> Wrong {
    let began = Instant::now();
    let tried = together::each(scenes, faults, |scene, fault| (fault, case(scene, &fault)));
    let mut wrong = Wrong { began: Some(began), ..Wrong::default() };
    tried.into_iter().for_each(|(fault, found)| wrong.check(&fault, found));
    wrong
}

/// The name of a system call, for people.
fn name(call: i64) -> String {
    let list = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
    let text = fs::read_to_string(list).unwrap_or_default();
    let end = format!(" {call}");
    let line = text.lines().find_map(|line| line.strip_suffix(&end)).unwrap_or(&end);
    line.trim_start_matches("#define __NR_").to_owned()
}

/// Cases that are shown.
const SHOWN: usize = 20;

/// What went wrong, with the fault that it came of.
#[derive(Debug, Default)]
pub struct Wrong {
    found: Vec<String>,
    cases: usize,
    began: Option<Instant>,
}

impl Wrong {
    /// Notes how a case went.
    pub fn check(&mut self, fault: &Fault, found: Result<(), String>) {
        self.cases += 1;
        if let Err(why) = found {
            self.found.push(format!("{} {:?}: {why}", name(fault.call), fault.which));
        }
    }

    /// Says how many cases there were.
    ///
    /// # Panics
    /// Something went wrong.
    pub fn none(&self, what: &str) {
        let took = self.began.map(|began| began.elapsed()).unwrap_or_default();
        eprintln!("{what}: {} cases in {took:.1?}", self.cases);
        assert!(
            self.found.is_empty(),
            "{what}: {} of {} cases:\n{}",
            self.found.len(),
            self.cases,
            shown(&self.found)
        );
    }
}

/// The first of the cases that went wrong.
#[must_use]
pub fn shown(found: &[String]) -> String {
    found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n")
}

/// What holds however `discnice` ends: no hang, no signal, nothing but lines of ours, and no more than `lines`.
///
/// # Errors
/// What is not so.
pub fn is_orderly(outcome: Option<Outcome>, lines: usize) -> Result<Outcome, String> {
    let Some(outcome) = outcome else { return Err("it hangs".into()) };
    let complaint = outcome.complaint();
    let ours = complaint.lines().all(|line| line.starts_with("discnice: "));
    if outcome.signal.is_some() || !ours || complaint.lines().count() > lines {
        return Err(format!("{outcome:?}"));
    }
    Ok(outcome)
}

/// Nothing stays stopped in the scene.
///
/// # Errors
/// The processes that do.
pub fn leaves_nothing(scene: &Scene) -> Result<(), String> {
    match scene.stopped() {
        stopped if stopped.is_empty() => Ok(()),
        stopped => Err(format!("{stopped:?} stay stopped")),
    }
}
