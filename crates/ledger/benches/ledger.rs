//! What the ledger costs on the way of a call: to see that nothing is owed, to take a place and
//! settle it, alone and while another thread does the same.
#![allow(missing_docs, unsafe_code, reason = "criterion's macros; the ledger's memory")]

use std::alloc::{Layout, alloc_zeroed};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use criterion::{Criterion, criterion_group, criterion_main};
use discnice_ledger::Class;
use discnice_ledger::policy::Limits;
use discnice_units::{Moment, Nanos, Rate};

fn class() -> &'static Class {
    let layout = Layout::from_size_align(Class::SIZE, 4096).expect("a page's alignment");
    // SAFETY: the size is not zero, and the memory is fresh, long enough and never freed.
    unsafe {
        let start = NonNull::new(alloc_zeroed(layout)).expect("memory");
        Class::create(start, Class::SIZE, 1, b"bench", 1).expect("long enough")
    }
}

/// A page is reserved and half of it settled; a clock that moves pays for it.
fn pass(class: &Class, now: &mut Moment) {
    let (pace, meter) = (class.pace(), class.total());
    *now = now.plus(Nanos(100));
    let _ = black_box(meter.reserve(pace, *now, 4096));
    meter.settle(pace, *now, 4096, 2048);
}

fn ledger(criterion: &mut Criterion) {
    let class = class();
    let mut now = Moment(1000 * Nanos::SECOND.0);
    let limits =
        Limits::UNLIMITED.with(discnice_ledger::policy::Resource::Total, Rate::per_second(1 << 40));
    class.set_limits(now, &limits);
    criterion.bench_function("nothing is owed", |bench| bench.iter(|| black_box(class).is_calm()));
    criterion.bench_function("reserve and settle", |bench| bench.iter(|| pass(class, &mut now)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut start = now;
        let done = &done;
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                pass(class, &mut start);
            }
        });
        criterion.bench_function("reserve and settle beside another", |bench| {
            bench.iter(|| pass(class, &mut now));
        });
        done.store(true, Ordering::Relaxed);
    });
}

criterion_group!(benches, ledger);
criterion_main!(benches);
