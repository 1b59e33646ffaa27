//! Users by name or number.

use anyhow::{anyhow, bail};

use crate::disk::Owner;
use crate::tool;

/// Finds a user with getent(1), which also knows users of a directory service.
///
/// # Errors
/// No such user, or root: what is measured is what ordinary users get.
pub fn find(name: &str) -> anyhow::Result<Owner> {
    let line = tool::run("getent", ["passwd", name])
        .map_err(|_| anyhow!("there is no user {name}; give --owner USER"))?;
    let fields: Vec<&str> = line.split(':').collect();
    let number = |field: usize| fields.get(field).and_then(|text| text.parse::<u32>().ok());
    let (Some(uid), Some(gid)) = (number(2), number(3)) else {
        bail!("the user database has no numbers for {name}");
    };
    if uid == 0 {
        bail!("the disk's owner must not be root; give --owner USER");
    }
    Ok(Owner { uid, gid })
}
