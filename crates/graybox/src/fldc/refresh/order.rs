//! The order in which the files of a directory are to lie.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::error::{RefreshError, Result};
use super::status::Meta;
use super::tree::Tree;

//= gray-box/4.2.2-user-order
/// Returns the position of each path in a given order; for one that comes twice, its first.
pub fn places(order: &[OsString]) -> HashMap<&[u8], u64> {
    let mut places = HashMap::new();
    for (path, place) in order.iter().zip(0..) {
        let path = path.as_bytes();
        places.entry(path.strip_prefix(b"./").unwrap_or(path)).or_insert(place);
    }
    places
}

//= gray-box/4.2.1-refresh
/// Files named in an order given come first, the others by size.
pub fn rank(places: &HashMap<&[u8], u64>, path: &[u8], meta: &Meta) -> u64 {
    let behind = meta.size.saturating_add(places.len() as u64);
    places.get(path).copied().unwrap_or(behind)
}

/// Counts the names of an order given that are no files of the tree, and adds a note on them.
///
/// # Errors
/// Refused if all are.
pub fn check(tree: &Tree, places: &HashMap<&[u8], u64>) -> Result<Option<String>> {
    let files = (1..tree.nodes.len()).filter(|index| !tree.nodes[*index].is_directory());
    let found: HashSet<Vec<u8>> =
        files.map(|index| tree.path(index)).filter(|path| places.contains_key(&**path)).collect();
    let (all, missing) = (places.len(), places.len() - found.len());
    if all > 0 && missing == all {
        let line = format!(
            ".: none of the {all} names in the order given is a file below it; give paths from it on, one a line"
        );
        return Err(RefreshError::Refused(vec![line]));
    }
    let line =
        || format!("{missing} of {all} names in the order given are no files below the directory");
    Ok((missing > 0).then(line))
}
