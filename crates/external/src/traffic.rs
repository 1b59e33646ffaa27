//! What all processes of the system move together: while that is nothing, none of a crowd moves anything.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use discnice_units::Nanos;

/// It is read this often at most: one reading costs as much as looking at four processes.
const EVERY: Nanos = Nanos::from_millis(5);
/// Bytes in a KiB, in which the kernel counts what devices move, and in a page, in which what is dirtied.
const COUNTED: [(&[u8], u64); 3] =
    [(b"nr_dirtied ", 4096), (b"pgpgin ", 1024), (b"pgpgout ", 1024)];

/// Bytes that the system's processes read, wrote and dirtied since it was started, as `/proc/vmstat` says
/// (proc(5)). What network file systems read is not in it.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Rc<RefCell<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    /// Kept open.
    file: Option<File>,
    bytes: Option<u64>,
    next: Nanos,
}

impl Traffic {
    /// The sum, a moment ago; `None` where the system does not tell.
    #[must_use]
    pub fn bytes(&self, now: Nanos) -> Option<u64> {
        let mut counted = self.0.borrow_mut();
        if now >= counted.next {
            counted.next = now.plus(EVERY);
            if counted.file.is_none() {
                counted.file = File::open("/proc/vmstat").ok();
            }
            counted.bytes = counted.file.as_ref().and_then(read);
        }
        counted.bytes
    }
}

fn read(file: &File) -> Option<u64> {
    let mut text = [0; 16 << 10];
    let length = file.read_at(&mut text, 0).ok()?;
    sum(text.get(..length)?)
}

fn sum(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    // The kernel's order is this one.
    COUNTED.iter().try_fold(0u64, |sum, (label, unit)| {
        let digits = lines.find_map(|line| line.strip_prefix(*label))?;
        let count: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(sum.wrapping_add(count.wrapping_mul(*unit)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::time;
    use std::io::Write;

    #[test]
    fn the_sum_is_of_three_counts() {
        let text = b"nr_dirty 7\nnr_dirtied 2\nnr_written 9\npgpgin 3\npgpgout 4\npswpin 5\n";
        assert_eq!(sum(text), Some(2 * 4096 + 7 * 1024));
        assert_eq!(sum(b"nr_dirtied 2\npgpgin 3\n"), None, "it is not there");
    }

    #[test]
    fn what_a_process_dirties_is_in_it() {
        let traffic = Traffic::default();
        let before = traffic.bytes(time::now()).unwrap();
        assert_eq!(traffic.bytes(time::now()), Some(before), "it is not read again at once");
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&vec![1; 8 << 20]).unwrap();
        let after = traffic.bytes(time::now().plus(EVERY)).unwrap();
        // Counts lag by what each processor keeps for itself.
        assert!(after >= before + (4 << 20), "{before} {after}");
    }
}
