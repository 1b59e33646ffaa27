//! Shared memory is untrusted: whatever it holds, using it neither crashes nor holds a thread for
//! ever.
#![no_main]

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::OnceLock;

use discnice_ledger::member::Charged;
use discnice_ledger::{Class, Direction};
use discnice_ledger::policy::pace::WINDOW;
use discnice_units::{Moment, Nanos};
use libfuzzer_sys::fuzz_target;

/// Longest wait for one piece of work: the believable debt, and the queue (`meter`), at the slowest
/// rate that is accepted here.
const LONGEST: u64 = 2 * Nanos::SECOND.0;

/// The block's memory, which is never freed.
fn memory() -> NonNull<u8> {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    let address = *MEMORY.get_or_init(|| {
        let layout = Layout::from_size_align(Class::SIZE, 4096).expect("a page's alignment");
        // SAFETY: the size is not zero.
        unsafe { alloc_zeroed(layout) as usize }
    });
    NonNull::new(address as *mut u8).expect("memory")
}

fuzz_target!(|data: &[u8]| {
    let start = memory();
    // SAFETY: nothing refers to the block between two inputs.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), Class::SIZE) };
    memory.fill(0);
    // SAFETY: zeroed memory of that size, which is never freed.
    unsafe { Class::create(start, Class::SIZE, 1, b"fuzzed", 1) }.expect("long enough");
    // Behind magic, nonce and version, which adopting checks.
    for piece in data.chunks_exact(12) {
        let at = u32::from_le_bytes(piece[..4].try_into().expect("four bytes")) as usize;
        let at = 20 + at % (Class::SIZE - 28);
        memory[at..at + 8].copy_from_slice(&piece[4..]);
    }
    // SAFETY: the block lives for ever, and every bit pattern is valid.
    let class = unsafe { Class::adopt(start, Class::SIZE, Some(1)) }.expect("the head is ours");
    let now = Moment(1000 * Nanos::SECOND.0);
    let (pace, window) = (class.pace(), class.window());
    assert!(window.0 >= WINDOW.0 / 50 && window.0 <= 60 * Nanos::SECOND.0);
    let meter = class.total();
    if meter.reserve(pace, now, 4096).is_none() {
        let longest = meter.rate().time_for(64 << 20).0.saturating_add(2 * LONGEST);
        assert!(meter.retry_at(pace, now).since(now).0 <= longest, "held too long");
    }
    meter.settle(pace, now, 4096, u64::MAX);
    meter.credit(pace, now, 1);
    class.direction(Direction::Write).calm_down(pace, now);
    let _ = (class.limits(), class.name(), class.waits(), class.is_calm());
    let _ = class.register(4711, Charged::default(), |_| true);
    class.expect(4712, |_| false);
    let _ = class.living(|_| true).map(|member| member.books().charged()).count();
});
