//! What a supervised call costs: the same calls before and below the filter, in nanoseconds, the
//! fastest and the median of 40 rounds.
//!
//! `cargo run --release -p discnice-notify --example cost [FILE]`
#![allow(unsafe_code, reason = "a class of memory of our own")]

use std::alloc::{Layout, alloc_zeroed};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::time::Instant;

use discnice_budget::Class;
use discnice_notify::Reach;
use discnice_sys::process;

const ROUNDS: usize = 40;
const CALLS: usize = 2000;

fn measure(name: &str, call: impl Fn()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            (0..CALLS).for_each(|_| call());
            begun.elapsed().as_nanos() as f64 / CALLS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("  {name:<12} {:>7.0} {:>7.0}", rounds[0], rounds[ROUNDS / 2]);
}

fn all(title: &str, file: &File) {
    println!("{title}");
    let read = |length| {
        move || {
            let mut buffer = [0; 4096];
            let _ = file.read_at(&mut buffer[..length], 0);
        }
    };
    measure("pread 0 B", read(0));
    measure("pread 4 KiB", read(4096));
    measure("getpid", || {
        let _ = process::id();
    });
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path =
        std::env::args_os().nth(1).map_or_else(std::env::current_exe, |path| Ok(path.into()))?;
    let file = File::open(path)?;
    all("without", &file);
    let layout = Layout::from_size_align(Class::SIZE, 4096)?;
    // SAFETY: the size is not zero.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or("no memory")?;
    // SAFETY: fresh memory of the right size, never freed.
    let class = unsafe { Class::create(start, Class::SIZE, 1, b"cost", 0) };
    let class = class.map_err(|foreign| foreign.to_string())?;
    discnice_notify::enter(class, Reach::All)?;
    all("supervised", &file);
    Ok(())
}
