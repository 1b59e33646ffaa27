//! How the background runs, and beside what: names of cases.

/// After how many seconds a background was given up that would not end; in the place of its time.
pub const GIVEN_UP: &str = "given up after";

/// Only the foreground.
pub const FOREGROUND: &str = "foreground alone";
/// Only the background.
pub const BACKGROUND: &str = "background alone";
/// Only the background, regulated: its targets are learned here.
pub const REGULATED: &str = "background alone, discnice --polite";
/// Both.
pub const BOTH: &str = "both";
/// Both, the background with the lowest CPU priority.
pub const NICE: &str = "both, nice -n 19";
/// Both, the background regulated.
pub const POLITE: &str = "both, discnice --polite";
