//! The classes of this user, as commands name them.

#![allow(unsafe_code, reason = "classes that were looked at are unmapped")]

use anyhow::Context;
use clap::builder::{OsStringValueParser, TypedValueParser};
use discnice_registry::name;
use discnice_sys::block::BlockId;

pub use discnice_registry::MappedClass;
pub use discnice_registry::Origin;
pub use discnice_registry::classes::{all, find, find_or_create, of_other_versions};
pub use discnice_registry::name::automatic as automatic_name;
pub use discnice_registry::name::check as check_name;
pub use discnice_registry::name::is_automatic;

use crate::complaint;

/// Returns the class of this name, also one that was made for one job, which [`find`] does not know.
///
/// # Errors
/// The classes cannot be listed.
pub fn named(name: &str) -> anyhow::Result<Option<MappedClass>> {
    Ok(all()?.into_iter().find(|found| found.name() == name))
}

/// The class of this name.
///
/// # Errors
/// There is none: what may have been meant.
pub fn existing(name: &str) -> anyhow::Result<MappedClass> {
    find(name).with_context(|| match similar(name) {
        Some(similar) => format!("no class {name}; did you mean {similar}?"),
        None => format!("no class {name}; see `discnice class list`"),
    })
}

/// Returns the class of this name, one that was made for a job included.
///
/// # Errors
/// As [`existing`].
pub fn known(name: &str) -> anyhow::Result<MappedClass> {
    named(name)?.map_or_else(|| existing(name), Ok)
}

/// Returns the class with the name most like this one, if any is.
pub fn similar(name: &str) -> Option<String> {
    let others = all().unwrap_or_default().into_iter().map(|found| found.name());
    complaint::meant(name, others.filter(|other| other != name))
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
        // Numbers were names once: such a class is still shown, changed and removed.
        let is_number = |text: &str| text.parse::<u64>().is_ok();
        let is_kept =
            |text: &&str| name::is_automatic(text) || is_number(text) && find(text).is_some();
        let given = name.to_str().filter(is_kept);
        let plain = given.filter(|text| !text.contains(|c: char| c == '/' || c.is_control()));
        plain.map_or_else(|| name::check(&name), |text| Ok(text.to_owned()))
    })
}

/// Unmaps classes that `top` and `metrics` looked at: they do so again and again.
pub fn let_go(classes: Vec<MappedClass>) {
    for found in classes {
        // SAFETY: both copied what they show before they call this.
        unsafe { found.unmap() };
    }
}
