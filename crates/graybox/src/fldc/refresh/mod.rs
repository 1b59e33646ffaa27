//! Refresh (section 4.2.1): rewrites a directory in layout order, small files first.
//!
//! The paper's version deletes the old directory and then renames the new one, and loses data if
//! the machine stops in between. Here: build aside, sync, verify by content hash, swap atomically,
//! sync, remove the old. The directory is complete at every moment, and the next refresh of it
//! clears up whatever an interrupted one has left.

mod build;
mod busy;
mod check;
mod content;
mod error;
mod gain;
mod meta;
mod raw;
mod tree;
mod work;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use error::RefreshError;
pub use gain::Survey;

use error::Result;
use tree::{Meta, Tree};
use work::{Place, Work};

/// What to do.
#[derive(Default)]
pub struct Options<'a> {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Also if files are in use or have hard links outside, which are then separated.
    pub force: bool,
    /// Paths below the directory in the order wanted; what is not named follows, small files
    /// first.
    pub order: &'a [OsString],
}

/// What was done, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Members, directories included.
    pub members: u64,
    /// Bytes that they take on the disk.
    pub bytes: u64,
    /// How the files lay; `None` where the file system does not tell.
    pub before: Option<Survey>,
    /// How they lie now; after a dry run, the best that may be hoped for.
    pub after: Option<Survey>,
    /// An earlier refresh had been interrupted and was cleared up.
    pub recovered: bool,
}

/// Told of progress: the step, bytes done, bytes in all.
pub type Progress<'a> = &'a mut dyn FnMut(&'static str, u64, u64);

/// Rewrites `path` in layout order.
///
/// # Errors
/// As [`RefreshError`] says; in every case the directory is as before, or complete and new.
pub fn refresh(path: &Path, options: &Options<'_>, progress: Progress<'_>) -> Result<Report> {
    let place = Place::find(path)?;
    let recovered = !options.dry_run && Work::recover(&place)?;
    let places = places(options.order);
    let tree = Tree::scan(place.dir.as_fd(), &|name, meta| rank(&places, name, meta))?;
    refuse_if_any(check::problems(&tree, options.force))?;
    if !options.force {
        refuse_if_any(check::shorten(busy::users(&tree, place.dir.as_fd())))?;
    }
    refuse_if_any(check::lack_of_space(&tree, place.dir.as_fd())?.into_iter().collect())?;
    let before = gain::survey(&tree, place.dir.as_fd());
    let (bytes, members) = check::needs(&tree);
    let mut report =
        Report { members, bytes, before, after: before.map(|now| now.ideal()), recovered };
    if !options.dry_run {
        let new = replace(&place, &tree, options.force, &mut |step, done| {
            progress(step, done, bytes);
        })?;
        let new_tree = Tree::scan(new.as_fd(), &|_, _| 0)?;
        report.after = gain::survey(&new_tree, new.as_fd());
    }
    Ok(report)
}

fn refuse_if_any(problems: Vec<String>) -> Result<()> {
    if problems.is_empty() { Ok(()) } else { Err(RefreshError::Refused(problems)) }
}

/// Where in an order given each path stands; one that comes twice, where it comes first.
fn places(order: &[OsString]) -> HashMap<&[u8], u64> {
    let mut places = HashMap::new();
    for (path, place) in order.iter().zip(0..) {
        let path = path.as_bytes();
        places.entry(path.strip_prefix(b"./").unwrap_or(path)).or_insert(place);
    }
    places
}

/// Files named in an order given come first, the others by size.
fn rank(places: &HashMap<&[u8], u64>, path: &[u8], meta: &Meta) -> u64 {
    let behind = meta.size.saturating_add(places.len() as u64);
    places.get(path).copied().unwrap_or(behind)
}

/// Builds, verifies and swaps; returns the new directory. Rolls back on any error.
fn replace(
    place: &Place,
    tree: &Tree,
    force: bool,
    progress: &mut dyn FnMut(&'static str, u64),
) -> Result<OwnedFd> {
    let work = Work::create(place)?;
    let new = match prepare(&work, place, tree, force, progress) {
        Ok(new) => new,
        Err(error) => {
            // The first error is the one to tell; the next refresh clears up what is left.
            let _ = work.remove();
            return Err(error);
        }
    };
    if let Err(error) = work.swap() {
        let _ = work.remove();
        return Err(error);
    }
    if check::unchanged(tree, place.dir.as_fd(), true).is_err() {
        return Err(RefreshError::KeptBoth(work.keep_aside()?));
    }
    progress("removing the old", 0);
    work.remove()?;
    Ok(new)
}

/// All that comes before the swap; returns the new tree, complete and on the disk.
fn prepare(
    work: &Work<'_>,
    place: &Place,
    tree: &Tree,
    force: bool,
    progress: &mut dyn FnMut(&'static str, u64),
) -> Result<OwnedFd> {
    let (old, new) = (place.dir.as_fd(), work.make_aside()?);
    let hashes = build::build(tree, old, new.as_fd(), &mut |done| progress("copying", done))?;
    work.sync()?;
    build::verify(tree, old, new.as_fd(), &hashes, &mut |done| progress("checking", done))?;
    check::unchanged(tree, old, false)?;
    if !force {
        refuse_if_any(check::shorten(busy::users(tree, old)))?;
    }
    Ok(new)
}
