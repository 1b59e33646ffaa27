//! The classes of this user: by name, made if need be, and all of them.

use anyhow::Context;
use discnice_ledger::policy::Limits;
use discnice_sys::block::BlockId;
use discnice_sys::{process, time};

use crate::abandoned::is_abandoned;
use crate::class::{
    MappedClass, SIZE, Sweep, attach_if, create, is_of_other_version, sweep, sweep_quietly,
};
use crate::entry::{Entries, Entry};
use crate::{MappedBoard, name, store};

/// Share of commands that look for abandoned classes, one in so many, as the kernel writes a line
/// for each class.
const SWEEPERS: u32 = 16;

/// Origin of a class that was asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The class existed.
    Found,
    /// The class was made, with the limits that it had before: its block was of another version, or
    /// lost.
    Renewed,
    /// The class was made, without limits.
    New,
}

/// The class of this name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<MappedClass> {
    find_by(Entries::open().ok().as_ref(), name)
}

fn find_by(entries: Option<&Entries>, name: &str) -> Option<MappedClass> {
    let entry = entries.and_then(|entries| entries.read(name));
    let entered = entry.and_then(|entry| {
        let is_it =
            |found: &MappedClass| found.class.nonce() == entry.nonce && is_named(found, name);
        attach_if(entry.block, is_it)
    });
    // Its entry may lie in the directory of a session that is over.
    let listed = || {
        let blocks = store::list(SIZE).unwrap_or_default();
        blocks.iter().find_map(|one| attach_if(one.id, |found| is_named(found, name)))
    };
    entered.or_else(listed)
}

fn is_named(found: &MappedClass, name: &str) -> bool {
    !found.removed && found.name() == name
}

//= rate-windows/3.1-classes
/// The class of this name, made if need be.
///
/// # Errors
/// There is no shared memory left.
pub fn find_or_create(name: &str) -> anyhow::Result<(MappedClass, Origin)> {
    if process::id().is_multiple_of(SWEEPERS) {
        sweep_quietly(Sweep::Passing);
    }
    if name::is_automatic(name) {
        return Ok((create(name)?, Origin::New));
    }
    let entries = Entries::open().ok();
    if let Some(entries) = &entries {
        // Before: making the board takes the same lock.
        let _ = MappedBoard::find_or_create();
        entries.lock();
    }
    let before = entries.as_ref().and_then(|entries| entries.read(name));
    if let Some(found) = find_by(entries.as_ref(), name) {
        if let Some(before) = &before {
            follow(&found, before);
        }
        return Ok((found, Origin::Found));
    }
    let made = create(name)?;
    let limits = before.as_ref().map_or(Limits::UNLIMITED, |entry| entry.limits);
    if let Some(entries) = &entries {
        // Without an entry it is found by its block.
        let _ = entries.write(name, &made.entry(limits));
    }
    if before.is_none() {
        return Ok((made, Origin::New));
    }
    made.class.set_limits(time::now(), &limits);
    Ok((made, Origin::Renewed))
}

/// Gives a class the limits of its entry, if that leads to another block: a program of another version has set them since,
/// in a class of its own.
fn follow(found: &MappedClass, entry: &Entry) {
    if (entry.block, entry.nonce) != (found.block, found.class.nonce()) {
        found.set_limits(&entry.limits);
    }
}

/// All classes of this user, by name. One that was removed is among them while processes are held by it.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn all() -> anyhow::Result<Vec<MappedClass>> {
    let listed = store::list(SIZE).context("cannot list shared memory")?;
    sweep(&listed, Sweep::Looking);
    let limits = |found: &MappedClass| found.class.is_limited() || found.class.yields();
    let has_members = |found: &MappedClass| found.class.living(process::exists).next().is_some();
    let holds = |found: &MappedClass| !found.removed || limits(found) && has_members(found);
    let mut classes: Vec<MappedClass> =
        listed.iter().filter_map(|one| attach_if(one.id, holds)).collect();
    classes.sort_by_cached_key(MappedClass::name);
    let boards: Vec<_> = classes.iter().filter_map(|found| found.class.board()).collect();
    MappedBoard::sweep(|since| is_abandoned(since, false), &boards);
    Ok(classes)
}

/// The classes of children of this one's members, without those that were removed and those in `known` blocks; the caller
/// unmaps them.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn of_children(parent: &MappedClass, known: &[BlockId]) -> anyhow::Result<Vec<MappedClass>> {
    let listed = store::list(SIZE).context("cannot list shared memory")?;
    let is_child =
        |found: &MappedClass| !found.removed && found.class.parent() == Some(parent.block);
    let new = listed.iter().map(|one| one.id).filter(|id| !known.contains(id));
    Ok(new.filter_map(|id| attach_if(id, is_child)).collect())
}

/// How many blocks of this user hold classes of other versions, which this one cannot show or change.
#[must_use]
pub fn of_other_versions() -> usize {
    let blocks = store::list(SIZE).unwrap_or_default();
    blocks.iter().filter(|one| is_of_other_version(one.id)).count()
}

#[cfg(test)]
mod tests {
    use discnice_ledger::policy::Resource;
    use discnice_units::Rate;

    use super::*;

    #[test]
    fn a_class_is_found_again_and_removed() {
        let name = format!("test-{}", std::process::id());
        let (made, origin) = find_or_create(&name).unwrap();
        assert_eq!(origin, Origin::New);
        let (again, origin) = find_or_create(&name).unwrap();
        assert!(origin == Origin::Found && again.block == made.block && again.name() == name);
        assert!(all().unwrap().iter().any(|found| found.block == made.block));
        Entries::open().unwrap().remove(&name, made.block);
        assert_eq!(find(&name).unwrap().block, made.block, "without its entry");
        made.remove().unwrap();
        assert!(find(&name).is_none());
    }

    #[test]
    fn limits_that_another_version_has_set_since_are_followed() {
        let name = format!("test-followed-{}", std::process::id());
        let (made, _) = find_or_create(&name).unwrap();
        let limits = |rate| Limits::UNLIMITED.with(Resource::Total, Rate::per_second(rate));
        made.set_limits(&limits(5 << 20));
        let entries = Entries::open().unwrap();
        let block = store::create(4096).unwrap().id;
        entries.write(&name, &Entry { block, nonce: 7, limits: limits(3 << 20) }).unwrap();
        let (again, origin) = find_or_create(&name).unwrap();
        assert_eq!((again.block, origin), (made.block, Origin::Found));
        assert_eq!(again.class.limits(), limits(3 << 20));
        assert_eq!(entries.read(&name).map(|entry| entry.block), Some(made.block));
        store::remove(block).unwrap();
        made.remove().unwrap();
    }
}
