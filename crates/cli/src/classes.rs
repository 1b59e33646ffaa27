//! The classes of this user, as commands name them.

#![allow(unsafe_code, reason = "classes that were looked at are unmapped")]

use clap::builder::{OsStringValueParser, TypedValueParser};
use discnice_registry::name;
use discnice_sys::block::BlockId;

pub use discnice_registry::Class as Found;
pub use discnice_registry::Origin;
pub use discnice_registry::class::{all, find, find_or_create, of_other_versions};
pub use discnice_registry::name::automatic as automatic_name;
pub use discnice_registry::name::check as check_name;
pub use discnice_registry::name::is_automatic;

/// Returns the class of this name, also one that was made for one job, which [`find`] does not know.
///
/// # Errors
/// The classes cannot be listed.
pub fn named(name: &str) -> anyhow::Result<Option<Found>> {
    Ok(all()?.into_iter().find(|found| found.name() == name))
}

/// Returns the name of the class in a block, if there is one.
pub fn name_of(block: BlockId) -> Option<String> {
    let found = discnice_registry::class::attach(block)?;
    let name = found.name();
    let_go(vec![found]);
    Some(name)
}

/// Parses a name that a person typed.
pub fn name_parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|name| name::check(&name))
}

/// Parses the name of a class that may be there: one that `run` made up, too.
pub fn known_name_parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|name| {
        let given = name.to_str().filter(|text| name::is_automatic(text));
        let plain = given.filter(|text| !text.contains(|c: char| c == '/' || c.is_control()));
        plain.map_or_else(|| name::check(&name), |text| Ok(text.to_owned()))
    })
}

/// Unmaps classes that `top` and `metrics` looked at: they do so again and again.
pub fn let_go(classes: Vec<Found>) {
    for found in classes {
        // SAFETY: both copied what they show before they call this.
        unsafe { found.unmap() };
    }
}
