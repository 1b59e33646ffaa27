//! What a class is allowed.

use core::fmt;

use discnice_units::Rate;

/// Thresholds of a class; all hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes per second to and from disks.
    pub total: Rate,
    /// Bytes per second from disks.
    pub read: Rate,
    /// Bytes per second to disks.
    pub write: Rate,
    /// Operations per second that reach a disk.
    pub operations: Rate,
}

impl Limits {
    /// Everything is allowed.
    pub const UNLIMITED: Self = Self {
        total: Rate::UNLIMITED,
        read: Rate::UNLIMITED,
        write: Rate::UNLIMITED,
        operations: Rate::UNLIMITED,
    };

    /// Refuses thresholds that can never take effect.
    ///
    /// # Errors
    /// Which direction is allowed more than the whole.
    pub fn check(&self) -> Result<(), Contradiction> {
        for (direction, rate) in [("read", self.read), ("write", self.write)] {
            if !rate.is_unlimited() && rate > self.total {
                return Err(Contradiction { direction, rate, total: self.total });
            }
        }
        Ok(())
    }
}

/// One direction is allowed more than both together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    direction: &'static str,
    rate: Rate,
    total: Rate,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, rate, total } = self;
        write!(
            f,
            "--disk-{direction} {rate} is more than --disk {total} allows; \
             lower --disk-{direction} or raise --disk"
        )
    }
}

impl core::error::Error for Contradiction {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_may_not_exceed_the_whole() {
        let part =
            Limits { total: Rate::per_second(5), read: Rate::per_second(10), ..Limits::UNLIMITED };
        assert!(part.check().unwrap_err().to_string().contains("--disk-read"));
        assert!(Limits { read: Rate::per_second(5), ..part }.check().is_ok());
        assert!(Limits { total: Rate::UNLIMITED, ..part }.check().is_ok());
    }
}
