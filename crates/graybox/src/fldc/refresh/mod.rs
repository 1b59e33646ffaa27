//! Refresh (section 4.2.1): rewrites a directory in layout order, small files first.
//!
//! The paper's version deletes the old directory and then renames the new one, and loses data if
//! the machine stops in between or another program works in the directory. Here every file is
//! copied into a work area beside the directory, in the order wanted; all copies are synced, read
//! back and compared; then each file that is not in use is exchanged for its copy in one step, and
//! the original is removed once it is safe from late openers. Directories, links, FIFOs, sockets,
//! device files and whatever is in use stay the inodes that they are. So the directory is complete
//! at every moment, for programs that work in it, too.
//!
//! # Programs at work in the directory
//! A file is exchanged under write leases on both inodes, which the kernel grants only if no other
//! descriptor has them open or mapped, and which make openers wait. An opener that had found the
//! original before the exchange is seen by its breaking the lease, or, if it comes later, when the
//! original is looked at again after [`GRACE`]: then the original goes back to its place. Only an
//! opener that takes longer than that between finding the inode and opening it gets an original
//! that is removed. An interrupted refresh leaves a work area in which file names tell copies from
//! originals; the next one decides by the same rules. What is undecidable, as both were changed, is
//! kept beside the directory and named.
//!
//! # Threats
//! Another user may be able to write to the parent of the directory, own it, or write to
//! directories inside, and may plant, rename and replace entries there at any moment.
//! - No directory tree is removed (but for the first format, see below). Removed are files in the work area, by descriptor, the
//!   marker, and the work area itself by rmdir(2), which takes only empty directories, and only
//!   if its name still means it. A user that puts another empty directory in its place in that very
//!   moment could remove that directory anyway, as it takes the same right.
//! - A work area is accepted if its descriptor shows it to belong to this user and to be closed to
//!   all others, and if the marker in it, a regular file of this user with one name, says the same
//!   owner, the inode and time of birth of the directory and those of the work area itself. Others
//!   can neither make one nor change one, only rename it. Its name is random, and a name that is
//!   taken is no obstacle.
//! - Directories inside are opened without crossing links or mounts, and must be the inodes that
//!   were scanned. Contents, owner, mode, attributes and times of a copy are taken from one
//!   descriptor, so that no file gets the contents of one and the rights of another.
//! - What comes out of an exchange is compared by inode with what was checked, and goes back if it
//!   is something else.
//! - Without root, only this user's files in this user's directories are touched.
//!
//! So the parent need not be trusted, sticky or not. Work areas of the first format, of which only
//! the names tell what belongs together, are cleared up where only this user can write.

mod busy;
mod check;
mod content;
mod copy;
mod error;
mod gain;
mod job;
mod left;
mod legacy;
pub mod marker;
mod meta;
mod mounted;
mod options;
mod order;
mod place;
mod raw;
mod recover;
mod report;
mod status;
mod swap;
mod times;
mod tree;
mod walk;
mod work;
pub mod worth;

use std::os::fd::AsFd;
use std::path::Path;

use discnice_units::Bytes;

pub use error::RefreshError;
pub use gain::Survey;
pub use options::{Options, Progress};
pub use report::{Cleared, RefreshReport};
pub use swap::GRACE;

use error::Result;
use job::Job;
use place::Place;
use tree::Tree;
use work::Area;

/// What is said of something kept.
const KEPT: &str = ": changed by another program during the refresh; kept there, look at it";

/// What a look says of a work area.
const INTERRUPTED: &str = ": left by an interrupted refresh; the next one clears it up";

//= gray-box/2-known-state
/// Rewrites `path` in layout order.
///
/// # Errors
/// As [`RefreshError`] says; in every case the directory is complete.
pub fn refresh(
    path: &Path,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<RefreshReport> {
    let place = Place::find(path)?;
    if options.dry_run {
        let job = Job::begin(&place, options)?;
        let bytes = Bytes::new(check::bytes(&job.tree, &job.pending));
        let files = job.pending.len() as u64;
        let after = job.before.map(|now| now.ideal());
        // Those of a refresh at work are none of a look's business.
        let left = Area::left_over(&place, None).unwrap_or_default();
        let mut report = job.report(files, bytes, after);
        report.notes.extend(left.iter().map(|area| format!("{}{INTERRUPTED}", area.shown())));
        return Ok(report);
    }
    let mut notes = Vec::new();
    match rewrite(&place, options, progress, &mut notes) {
        Ok(report) => {
            let kept = notes.iter().any(|note| note.ends_with(KEPT));
            notes.extend(report.notes);
            Ok(RefreshReport { notes, kept, ..report })
        }
        Err(error) => Err(error.with(notes)),
    }
}

/// Rewrites, and adds to `notes` what is to be told whether that succeeds or not.
fn rewrite(
    place: &Place,
    options: &Options<'_>,
    progress: Progress<'_>,
    notes: &mut Vec<String>,
) -> Result<RefreshReport> {
    let area = Area::create(place)?;
    let done = recover(place, &area, options.force, notes).and_then(|recovered| {
        let mut job = Job::begin(place, options)?;
        job.run(&area, progress)?;
        Ok((recovered, job))
    });
    let cleared = recover::clear(place, &area, options.force);
    let cleared = cleared.map(|kept| notes.extend(kept.map(|name| note_of_kept(&name))));
    // The first error is the one to tell; the next refresh clears up what is left.
    let (recovered, mut job) = done?;
    let (files, bytes) = job.finish()?;
    let new_tree = Tree::scan(place.dir.as_fd(), &|_, _| 0)?;
    let after = gain::survey(&new_tree, place.dir.as_fd());
    cleared?;
    Ok(RefreshReport { recovered, ..job.report(files, bytes, after) })
}

/// Clears up what interrupted refreshes have left; whether there was something.
fn recover(place: &Place, area: &Area<'_>, force: bool, notes: &mut Vec<String>) -> Result<bool> {
    let old = legacy::recover(place);
    if let legacy::Found::Left(name) = &old {
        notes.push(format!("{name}: not made by discnice, or not safely known to be; left alone"));
    }
    let mut recovered = old == legacy::Found::ClearedUp;
    recovered |= clear_left_over(place, Some(area), force, notes)?;
    Ok(recovered)
}

/// Clears up the work areas but for `own`; whether there was one.
fn clear_left_over(
    place: &Place,
    own: Option<&Area<'_>>,
    force: bool,
    notes: &mut Vec<String>,
) -> Result<bool> {
    let left = Area::left_over(place, own)?;
    for area in &left {
        notes.extend(recover::clear(place, area, force)?.map(|kept| note_of_kept(&kept)));
    }
    Ok(!left.is_empty())
}

/// Clears up what interrupted refreshes of `path` have left, and rewrites nothing. `force` as in [`Options`].
///
/// # Errors
/// As [`RefreshError`] says; in every case the directory is complete.
pub fn clear_up(path: &Path, force: bool) -> Result<Cleared> {
    let place = Place::find(path)?;
    let mut notes = Vec::new();
    match clear_left_over(&place, None, force, &mut notes) {
        Ok(recovered) => Ok(Cleared { recovered, kept: notes }),
        Err(error) => Err(error.with(notes)),
    }
}

fn note_of_kept(name: &str) -> String {
    format!("{name}{KEPT}")
}

#[cfg(test)]
mod tests;
