//! Checks that no other work keeps the machine busy. Figures from a busy machine are wrong for ever
//! after.

use std::fs;
use std::thread;
use std::time::Duration;

/// How long to watch.
const WATCH: Duration = Duration::from_millis(500);

/// Shares of the time that still count as quiet.
const CPU_QUIET: f64 = 0.15;
const DISK_QUIET: f64 = 0.10;

/// Watches the machine for half a second; says what keeps it busy, if anything does.
#[must_use]
pub fn busy() -> Option<String> {
    let before = (cpu(), disks());
    thread::sleep(WATCH);
    let after = (cpu(), disks());
    if let (Some((busy_before, all_before)), Some((busy_after, all_after))) = (before.0, after.0) {
        let all = all_after.saturating_sub(all_before).max(1);
        let share = busy_after.saturating_sub(busy_before) as f64 / all as f64;
        if share > CPU_QUIET {
            return Some(format!("the processors are busy {:.0} % of the time", share * 100.0));
        }
    }
    let watched = WATCH.as_millis() as f64;
    after.1.into_iter().find_map(|(name, millis)| {
        let earlier = before.1.iter().find(|(other, _)| *other == name)?.1;
        let share = millis.saturating_sub(earlier) as f64 / watched;
        (share > DISK_QUIET)
            .then(|| format!("disk {name} is busy {:.0} % of the time", share * 100.0))
    })
}

/// Busy and all ticks of all processors (proc_stat(5)).
fn cpu() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .filter_map(|tick| tick.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is in user time already.
    let all = ticks.iter().take(8).sum();
    let idle: u64 = ticks.get(3)? + ticks.get(4)?;
    Some((u64::saturating_sub(all, idle), all))
}

/// Milliseconds of I/O of each device (Documentation/admin-guide/iostats.rst).
fn disks() -> Vec<(String, u64)> {
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let name = fields.nth(2)?.to_owned();
            Some((name, fields.nth(9)?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_understood() {
        let (busy, all) = cpu().unwrap();
        assert!(busy > 0 && busy <= all);
        assert!(!disks().is_empty() || !std::path::Path::new("/sys/block").exists());
    }
}
