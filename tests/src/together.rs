//! Cases that mostly wait, several at a time.

use std::sync::Mutex;
use std::thread;

/// Does `case` for each of the items: each worker takes one after the other, and all work at once. Returns what came of them,
/// in no order.
///
/// # Panics
/// A case does.
pub fn each<W, I, R>(workers: &[W], items: I, case: impl Fn(&W, I::Item) -> R + Sync) -> Vec<R>
where
    W: Sync,
    I: IntoIterator<IntoIter: Send>,
    R: Send,
{
    let left = Mutex::new(items.into_iter());
    let next = || left.lock().expect("no item is a panic").next();
    let work =
        |worker| -> Vec<R> { std::iter::from_fn(next).map(|item| case(worker, item)).collect() };
    thread::scope(|scope| {
        let running: Vec<_> = workers.iter().map(|worker| scope.spawn(|| work(worker))).collect();
        running.into_iter().flat_map(|one| one.join().expect("no case panics")).collect()
    })
}
