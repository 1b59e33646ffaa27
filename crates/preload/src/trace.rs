//! Records of the program's calls, while `discnice trace` reads them.
//!
//! Otherwise nothing here is reached: that a class is traced shows in the word of which every hook asks anyway whether
//! anything holds the process.

use core::ffi::CStr;

use discnice_ledger::Class;
use discnice_ledger::trace::{self, Record};
use discnice_sys::{process, time};
use discnice_units::Moment;

use crate::engine;
use crate::thread::local;

/// Returns true if calls are to be recorded.
#[inline(always)]
pub fn is_on() -> bool {
    engine::class().is_some_and(Class::is_traced)
}

/// An argument of one of libc's functions.
pub trait Argument {
    /// Returns it if it may be a descriptor.
    fn number(&self) -> Option<i32> {
        None
    }
}

/// What one of libc's functions returns.
pub trait Answer {
    /// Returns it as a number.
    fn value(&self) -> i64;
}

impl Argument for i32 {
    fn number(&self) -> Option<i32> {
        Some(*self)
    }
}

impl Answer for () {
    fn value(&self) -> i64 {
        0
    }
}

macro_rules! arguments {
    ($($type:ty)+) => { $( impl Argument for $type {} )+ };
}

arguments! { u32 i64 u64 isize usize }

impl Answer for i32 {
    fn value(&self) -> i64 {
        (*self).into()
    }
}

impl Answer for i64 {
    fn value(&self) -> i64 {
        *self
    }
}

impl Answer for isize {
    fn value(&self) -> i64 {
        *self as i64
    }
}

impl<T> Argument for *const T {}
impl<T> Argument for *mut T {}
impl<T> Argument for Option<T> {}

impl<T> Answer for *mut T {
    fn value(&self) -> i64 {
        *self as i64
    }
}

/// Begins a call that is recorded; returns when.
#[cold]
#[inline(never)]
pub fn begin() -> Moment {
    // What became of calls before the trace began.
    let _ = local().thread.outcomes.take();
    time::now()
}

/// Records a call that has returned.
#[cold]
#[inline(never)]
pub fn end(name: &CStr, first: Option<i32>, result: i64, begun: Moment) {
    let Some(class) = engine::class() else { return };
    let (outcome, waited) = local().thread.outcomes.take();
    let at = time::now();
    class.record(&Record {
        at,
        process: process::id(),
        thread: process::thread(),
        name: trace::name(name.to_bytes()),
        first,
        why: outcome.why,
        result,
        predicted: outcome.predicted,
        charged: outcome.charged,
        took: at.since(begun),
        waited,
    });
}
