//! What a job may wait for before it goes on.

/// One thing. The numbers are places in shared memory: they never change without a new version of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Condition {
    /// The machine has mains power.
    Ac = 0,
    /// The network costs nothing by the byte.
    Unmetered = 1,
    /// The machine has not been used for a while.
    Idle = 2,
    /// It is a certain time of the day.
    Hours = 3,
    /// Few processes compete for processors.
    Load = 4,
    /// A command of the user's says so.
    Command = 5,
}

impl Condition {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Ac, Self::Unmetered, Self::Idle, Self::Hours, Self::Load, Self::Command];

    /// The name in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ac => "ac",
            Self::Unmetered => "unmetered",
            Self::Idle => "idle",
            Self::Hours => "hours",
            Self::Load => "load",
            Self::Command => "cmd",
        }
    }

    /// What is waited for, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ac => "mains power",
            Self::Unmetered => "an unmetered network",
            Self::Idle => "an idle machine",
            Self::Hours => "its time of the day",
            Self::Load => "a lower load",
            Self::Command => "the success of its command",
        }
    }
}

/// A set of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conditions(u32);

impl Conditions {
    /// None.
    pub const NONE: Self = Self(0);

    /// The set of these bits; others than those of conditions are dropped.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & ((1 << Condition::ALL.len()) - 1))
    }

    /// One bit for each condition, at the place of its number.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set with one more condition.
    #[must_use]
    pub const fn with(self, one: Condition) -> Self {
        Self(self.0 | 1 << one as u8)
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The conditions of the set.
    pub fn iter(self) -> impl Iterator<Item = Condition> {
        Condition::ALL.into_iter().filter(move |one| self.0 & 1 << *one as u8 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, one) in Condition::ALL.into_iter().enumerate() {
            assert_eq!(one as usize, place);
            let set = Conditions::NONE.with(one);
            assert!(set.iter().eq([one]) && Conditions::from_bits(set.bits()) == set);
        }
        assert_eq!(Conditions::from_bits(u32::MAX).iter().count(), Condition::ALL.len());
    }
}
