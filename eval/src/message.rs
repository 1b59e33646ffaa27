//! What messages of the program have in common.

/// Begin of every message.
pub const PREFIX: &str = "discnice-eval: ";
