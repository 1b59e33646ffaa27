//! A worker for figure 7: a sort in passes, of a size that is either given or asked of MAC. Run
//! several at once in a memory-limited group: `eval/benches/graybox/mac.sh`.
//!
//! The paper leaves the merging out, which on its machine cost little. Here it is done, on records
//! that are made up as a disk would bring them: without it the smallest passes would always
//! look best, as sorting them compares less and the comparing that they leave would not be counted.
//!
//! `mac_sort TOTAL-MiB PASS-MiB`, or `mac_sort TOTAL-MiB mac [MIN-MiB]`
//!
//! Prints one line: seconds, passes, mean pass in MiB, seconds in gb_alloc, seconds waited for
//! memory, major faults during the passes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::{Duration, Instant};

use discnice_graybox::mac::{Region, gb_alloc};

const MIB: u64 = 1 << 20;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| match args.next().as_deref() {
        Some("mac") => None,
        Some(text) => text.parse().ok(),
        None => Some(default),
    };
    let total = number(256).unwrap_or(256) * MIB;
    let pass = number(64).map(|mib| mib * MIB);
    let min = number(16).unwrap_or(16) * MIB;
    let mut tally = Tally::default();
    let start = Instant::now();
    let mut left = total;
    while left > 0 {
        left -= match pass {
            Some(bytes) => by_plan(bytes.min(left), &mut tally)?,
            None => by_mac(min.min(left), left, &mut tally)?,
        };
        tally.passes += 1;
    }
    merge(tally.passes, total);
    println!(
        "{:.2} {} {:.0} {:.3} {:.3} {}",
        start.elapsed().as_secs_f64(),
        tally.passes,
        (total / MIB) as f64 / f64::from(tally.passes),
        tally.allocating.as_secs_f64(),
        tally.waiting.as_secs_f64(),
        tally.major_faults,
    );
    Ok(())
}

#[derive(Default)]
struct Tally {
    passes: u32,
    allocating: Duration,
    waiting: Duration,
    major_faults: u64,
}

fn by_plan(bytes: u64, tally: &mut Tally) -> io::Result<u64> {
    let mut region = Region::reserve(bytes as usize)?;
    work(region.as_mut_slice(), tally);
    Ok(bytes)
}

fn by_mac(min: u64, max: u64, tally: &mut Tally) -> io::Result<u64> {
    let mut pause = Duration::from_millis(10);
    loop {
        let start = Instant::now();
        let grant = gb_alloc(min, max, MIB)?;
        let taken = start.elapsed();
        if let Some(mut grant) = grant {
            tally.allocating += taken;
            let bytes = grant.length();
            work(grant.as_mut_slice(), tally);
            return Ok(bytes);
        }
        // Asking costs about a millisecond of processor time, which others could use.
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
        tally.waiting += start.elapsed();
    }
}

/// Reads records (made up, as a disk would bring them) and sorts them by their keys.
fn work(memory: &mut [u8], tally: &mut Tally) {
    let before = major_faults();
    let mut random = fastrand::Rng::with_seed(1);
    random.fill(memory);
    let (records, _) = memory.as_chunks_mut::<100>();
    records.sort_unstable();
    tally.major_faults += major_faults() - before;
}

/// Merges as many sorted runs as there were passes: each record is taken from the run with the
/// least next key, and copied out.
fn merge(runs: u32, bytes: u64) {
    let mut random = fastrand::Rng::with_seed(2);
    let mut keys: BinaryHeap<_> =
        (0..runs).map(|run| Reverse((random.u32(..).into(), run))).collect();
    let mut out = vec![0; 1 << 20];
    let (records, _) = out.as_chunks_mut::<100>();
    let most = records.len();
    for record in 0..(bytes / 100) as usize {
        let Some(mut least) = keys.peek_mut() else { return };
        let Reverse((key, run)): Reverse<(u64, u32)> = *least;
        records[record % most] = [run as u8; 100];
        *least = Reverse((key + u64::from(random.u32(..)), run));
    }
    std::hint::black_box(out);
}

/// Field 12 of /proc/self/stat.
fn major_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().nth(9).and_then(|text| text.parse().ok()).unwrap_or(0)
}
