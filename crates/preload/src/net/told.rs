//! Takes back what the kernel was told of connections, rates ([`pacing`]) and windows ([`steering`]).

use core::sync::atomic::Ordering;

use crate::engine;
use crate::net::{TOLD, for_each, pacing, steering};

/// Takes all back once traffic is not limited any more.
#[inline]
pub fn mind() {
    if TOLD.load(Ordering::Relaxed) && !engine::minds_traffic() {
        take_back();
    }
}

/// Takes all back.
#[cold]
pub fn take_back() {
    // A child of vfork(2) has its parent's memory.
    if engine::is_borrowed() || !TOLD.swap(false, Ordering::Relaxed) {
        return;
    }
    for_each(|fd, socket| {
        steering::take_back(fd, socket);
        pacing::take_back(fd, socket);
    });
}
