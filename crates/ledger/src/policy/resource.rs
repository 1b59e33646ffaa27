//! What a class's thresholds are about.

//= rate-windows/3.2-two-windows
/// One thing that a class may be limited in. The numbers are places in shared memory: they never
/// change without a new version of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Resource {
    /// Bytes to and from disks.
    Total = 0,
    /// Bytes from disks.
    Read = 1,
    /// Bytes to disks.
    Write = 2,
    /// Operations that reach a disk.
    Operations = 3,
    /// Calls on names and inodes: open, create, unlink, rename, stat and the like.
    Metadata = 4,
    /// Bytes sent and received over the network.
    Net = 5,
    /// Bytes sent.
    NetUp = 6,
    /// Bytes received.
    NetDown = 7,
}

impl Resource {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Total,
        Self::Read,
        Self::Write,
        Self::Operations,
        Self::Metadata,
        Self::Net,
        Self::NetUp,
        Self::NetDown,
    ];

    /// The name in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Read => "read",
            Self::Write => "write",
            Self::Operations => "operations",
            Self::Metadata => "metadata",
            Self::Net => "net",
            Self::NetUp => "net_up",
            Self::NetDown => "net_down",
        }
    }

    /// The command line's option for its threshold.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Total => "--disk",
            Self::Read => "--disk-read",
            Self::Write => "--disk-write",
            Self::Operations => "--disk-iops",
            Self::Metadata => "--meta-ops",
            Self::Net => "--net",
            Self::NetUp => "--net-up",
            Self::NetDown => "--net-down",
        }
    }

    /// Returns true if its units are bytes; otherwise they are operations.
    #[must_use]
    pub const fn is_bytes(self) -> bool {
        !matches!(self, Self::Operations | Self::Metadata)
    }

    /// Returns the resource of which this is a part, if any. That one's threshold applies to this
    /// as well.
    #[must_use]
    pub const fn whole(self) -> Option<Self> {
        match self {
            Self::Read | Self::Write => Some(Self::Total),
            Self::NetUp | Self::NetDown => Some(Self::Net),
            _ => None,
        }
    }

    /// The set that holds this resource alone.
    #[must_use]
    pub const fn only(self) -> Resources {
        Resources(1 << self as u8)
    }
}

/// A set of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources(u32);

impl Resources {
    /// None.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self((1 << Resource::COUNT) - 1);
    /// What is seen of a process's files from outside: of operations only how many its bytes take at least.
    pub const FROM_OUTSIDE: Self =
        Resource::Total.only().and(Resource::Read.only()).and(Resource::Write.only());
    /// What a call that may reach a disk is held by, and what a filter sees of a process.
    pub const DISK: Self = Resource::Total
        .only()
        .and(Resource::Read.only())
        .and(Resource::Write.only())
        .and(Resource::Operations.only());
    /// What a call on a socket is held by.
    pub const NETWORK: Self =
        Resource::Net.only().and(Resource::NetUp.only()).and(Resource::NetDown.only());

    /// The set of these bits; others than those of resources are dropped.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// One bit for each resource, at the place of its number.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both sets.
    #[must_use]
    pub const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the set contains this resource.
    #[must_use]
    pub const fn contains(self, resource: Resource) -> bool {
        self.0 & resource.only().0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, resource) in Resource::ALL.into_iter().enumerate() {
            assert_eq!(resource as usize, place);
            assert!(Resources::from_bits(1 << place).contains(resource));
        }
        assert_eq!(Resources::from_bits(u32::MAX).bits().count_ones() as usize, Resource::COUNT);
    }

    //= rate-windows/3.2-two-windows
    #[test]
    fn disk_and_network_are_apart() {
        assert!(Resources::DISK.within(Resources::NETWORK).is_empty());
        assert!(!Resources::DISK.contains(Resource::Metadata));
    }
}
