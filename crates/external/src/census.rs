//! Who is new in the system.
//!
//! The kernel hands out process ids in ascending order, and tells the last one in `/proc/loadavg`:
//! one small file says whether anybody was born since the last look, and who it can be.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use discnice_benice::tree;
use discnice_sys::procfs::{self, Stat};

/// More births between two looks than this: then look at everybody.
const MANY: u32 = 4096;

/// Who was born since the last look.
#[derive(Debug, Default)]
pub struct Census {
    /// Kept open: it is read hundreds of times a second.
    load: Option<File>,
    last: Option<u32>,
}

impl Census {
    /// Living processes that are new since the last call, parents before their children; at the
    /// first call, and when too many were born to tell, all that live.
    pub fn newcomers(&mut self) -> Vec<Stat> {
        let Some(last) = self.last_id() else { return Vec::new() };
        let before = self.last.replace(last);
        let mut found: Vec<Stat> = match before {
            Some(before) if before == last => return Vec::new(),
            Some(before) if last > before && last - before < MANY => {
                (before + 1..=last).filter_map(living).collect()
            }
            _ => tree::every_process().filter_map(living).collect(),
        };
        found.sort_by_key(|stat| (stat.started, stat.id));
        found
    }

    /// The id that was given out last (proc(5), `/proc/loadavg`, fifth field); threads have ids too.
    fn last_id(&mut self) -> Option<u32> {
        if self.load.is_none() {
            self.load = File::open("/proc/loadavg").ok();
        }
        let mut text = [0; 128];
        let length = self.load.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.trim_end().rsplit(' ').next()?.parse().ok()
    }
}

fn living(id: u32) -> Option<Stat> {
    procfs::stat(id).filter(|stat| !stat.has_ended())
}

/// Whether the process began its present program with `mark` in its environment: children of
/// programs that our library cannot enter keep what it gave to their ancestor.
#[must_use]
pub fn carries(id: u32, mark: &[u8]) -> bool {
    let block = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    block.split(|byte| *byte == 0).any(|entry| {
        entry.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn newcomers_are_found_once() {
        let mut census = Census::default();
        let own = |found: &[Stat], id: u32| found.iter().any(|stat| stat.id == id);
        assert!(own(&census.newcomers(), std::process::id()), "the first look sees all");
        let mut child = Command::new("sleep").arg("100").env("MARK", "1f:2").spawn().unwrap();
        assert!(own(&census.newcomers(), child.id()));
        assert!(!own(&census.newcomers(), child.id()));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(carries(child.id(), b"MARK=1f:2") && carries(child.id(), b"MARK=1f"));
        assert!(!carries(child.id(), b"MARK=1"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
