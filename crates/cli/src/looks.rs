//! How much of the time looking at a job takes.

/// After each look, what was looked at is left alone for so many times as long as the look took: looking takes less than one
/// part in so many of the time, also where a class has thousands of members.
pub const RESTS_PER_LOOK: u32 = 20;
