//! A process that lets a job go on if the parent that looks at its conditions is killed while the job stands.

use std::fs::File;
use std::io;

use discnice_ledger::policy::Conditions;
use discnice_processes::fork;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::paused::Chosen;

/// Starts a guardian of these parts of a class. It ends with this process, however that ends: one that still says then what
/// the job waits for was killed.
///
/// # Errors
/// Descriptors or processes are short.
pub fn start(parts: Vec<Chosen>) -> io::Result<()> {
    let parent = pidfd_open(getpid(), PidfdFlags::empty())?;
    fork::detached(parent, move |parent| guard(&parent, &parts))
}

/// Makes this process, which was started for that, a guardian: what ends its parent from a terminal does not end it.
pub(super) fn become_one() {
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
    let _ = rustix::thread::set_name(c"discnice-guard");
}

/// The guardian's whole life.
fn guard(parent: &File, parts: &[Chosen]) {
    become_one();
    while poll(&mut [PollFd::new(parent, PollFlags::IN)], None).is_err() {}
    let stands = |part: &&Chosen| part.is_paused();
    let Some(class) = parts.iter().find(stands).map(|part| part.found().class) else { return };
    // What stands for another reason, the user wants to stand.
    if !class.unmet().is_empty() {
        parts.iter().filter(stands).for_each(|part| part.go_on());
        class.set_unmet(Conditions::NONE);
    }
}
