//! The classes of this user, as commands name them.

#![allow(unsafe_code, reason = "classes that were looked at are unmapped")]

use clap::builder::{OsStringValueParser, TypedValueParser};
use discnice_registry::name;

pub use discnice_registry::Class as Found;
pub use discnice_registry::Origin;
pub use discnice_registry::class::{all, find, find_or_create, of_other_versions};
pub use discnice_registry::name::automatic as automatic_name;
pub use discnice_registry::name::check as check_name;

/// Parses a name that a person typed.
pub fn name_parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|name| name::check(&name))
}

/// Unmaps classes that `top` and `metrics` looked at: they do so again and again.
pub fn let_go(classes: Vec<Found>) {
    for found in classes {
        // SAFETY: both copied what they show before they call this.
        unsafe { found.unmap() };
    }
}
