//! Is a process still the one that it was?

pub use discnice_sys::procfs::is_same;
use discnice_sys::procfs::stat;

/// The start time of a process in clock ticks since boot; `None` when there is no such process, or
/// it is a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid).filter(|stat| !stat.has_ended()).map(|stat| stat.started)
}

/// Returns true if `/proc` is readable; without it no process may be presumed dead.
pub fn can_tell() -> bool {
    start_time(std::process::id()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_and_the_dead() {
        assert!(can_tell());
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id();
        assert!(discnice_processes::tree::can_be_looked_at(pid));
        let started = start_time(pid).unwrap();
        assert!(started >= start_time(std::process::id()).unwrap() && is_same(pid, started));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(start_time(pid).is_none() && !is_same(pid, started));
    }
}
