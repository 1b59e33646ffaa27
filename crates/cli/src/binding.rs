//! What members of a class wait for at one moment: the binding reason.

use discnice_ledger::policy::{Condition, Conditions, Resource, Resources};
use discnice_sys::time;
use discnice_units::Nanos;
use serde::{Serialize, Serializer};

use crate::classes::MappedClass;
use crate::running::Running;

/// The reason that binds; of several limits the one that holds longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// The user has paused the class.
    Paused,
    /// Conditions of a job of it are not met: one bit for each.
    Unmet(u32),
    /// All is moved that it may move in all.
    UsedUp,
    /// Others wait for memory.
    Memory,
    /// Others use the disk, and the class has its least rate.
    Least,
    /// Packets wait behind those of others, on other machines perhaps.
    Uplink,
    /// Others use the disk or the network, so this limit, by the place of its resource, is in force.
    Others(u8),
    /// A limit is in force whatever others do.
    Limit(u8),
}

impl Binding {
    /// What binds a class now, if it is ahead of anything; `rests` tells whether it stands for its memory.
    pub fn of(found: &MappedClass, rests: bool) -> Option<Self> {
        let (class, now) = (found.class, time::now());
        let unmet = class.unmet();
        if !unmet.is_empty()
            && (class.is_paused() || Running::all(found).any(|one| one.is_paused()))
        {
            return Some(Self::Unmet(unmet.bits()));
        }
        if class.is_paused() {
            return Some(Self::Paused);
        }
        if class.is_used_up() {
            return Some(Self::UsedUp);
        }
        if rests {
            return Some(Self::Memory);
        }
        let limited = class.limited();
        let ahead = |one: &Resource| class.meter(*one).frontier().since(now);
        let in_force = Resource::ALL.into_iter().filter(|one| limited.contains(*one));
        let Some(longest) = in_force.filter(|one| ahead(one) > Nanos(0)).max_by_key(ahead) else {
            return class.uplink().yielding(now).map(|_| Self::Uplink);
        };
        let place = longest as u8;
        let is_kept = Resources::DISK.contains(longest) && class.keeps_least(now);
        Some(match class.yields() {
            true if is_kept => Self::Least,
            true => Self::Others(place),
            false => Self::Limit(place),
        })
    }

    /// The resource that a binding limit is about, if one binds.
    pub fn resource(self) -> Option<Resource> {
        match self {
            Self::Others(place) | Self::Limit(place) => {
                Resource::ALL.get(usize::from(place)).copied()
            }
            Self::Paused
            | Self::Unmet(_)
            | Self::UsedUp
            | Self::Memory
            | Self::Least
            | Self::Uplink => None,
        }
    }

    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Unmet(_) => "condition",
            Self::UsedUp => "disk_total",
            Self::Memory => "memory",
            Self::Least => "at_least",
            Self::Uplink => "uplink",
            Self::Others(_) => "others",
            Self::Limit(_) => self.resource().map_or("limit", Resource::name),
        }
    }

    /// At most four characters, for a column.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Paused => "stop",
            Self::Unmet(_) => "cond",
            Self::UsedUp => "used",
            Self::Memory => "mem",
            Self::Least => "keep",
            Self::Others(_) | Self::Uplink => "give",
            Self::Limit(_) => match self.resource() {
                Some(Resource::Read) => "read",
                Some(Resource::Write) => "writ",
                Some(Resource::Operations) => "iops",
                Some(Resource::Metadata) => "meta",
                Some(Resource::Net) => "net",
                Some(Resource::NetUp) => "up",
                Some(Resource::NetDown) => "down",
                Some(Resource::Total) | None => "disk",
            },
        }
    }

    /// What a class does that it binds, in words.
    pub fn state(self) -> String {
        match self {
            Self::Paused => "paused".into(),
            reason => format!("waits for {}", reason.words()),
        }
    }

    /// In words.
    pub fn words(self) -> String {
        let of = |resource: Option<Resource>| resource.map_or("limit", crate::explanation::name);
        match self {
            Self::Paused => "paused".into(),
            Self::Unmet(bits) => conditions(Conditions::from_bits(bits)),
            Self::UsedUp => "its disk total, which is used up".into(),
            Self::Memory => "others that wait for memory".into(),
            Self::Least => "others on its disks, as far as its least rate lets it".into(),
            Self::Uplink => "others behind the same uplink".into(),
            Self::Others(_) => match self.resource() {
                Some(Resource::Net | Resource::NetUp | Resource::NetDown) => {
                    "others on the network".into()
                }
                _ => "others on its disks".into(),
            },
            Self::Limit(_) => format!("its limit ({})", of(self.resource())),
        }
    }
}

/// Conditions that are waited for, in words.
pub fn conditions(unmet: Conditions) -> String {
    let words: Vec<&str> = unmet.iter().map(Condition::words).collect();
    words.join(" and ")
}

impl Serialize for Binding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that are no limit's.
    const OTHERS: [Binding; 7] = [
        Binding::Paused,
        Binding::Unmet(3),
        Binding::UsedUp,
        Binding::Memory,
        Binding::Least,
        Binding::Uplink,
        Binding::Others(0),
    ];

    #[test]
    fn each_reason_is_documented() {
        for (page, field) in [("howto-watch.md", "`waits_for` |"), ("report.md", "`waited_for[]`")]
        {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
            let text = std::fs::read_to_string(path.join(page)).unwrap();
            let line = text.lines().find(|line| line.contains(field)).unwrap();
            for one in OTHERS {
                let name = one.name();
                assert!(line.contains(&format!("`{name}`")), "{page} says nothing of {name}");
            }
        }
    }

    #[test]
    fn what_is_paused_does_not_wait_for_that() {
        assert_eq!(Binding::Paused.state(), "paused");
        assert_eq!(Binding::Others(0).state(), "waits for others on its disks");
    }

    #[test]
    fn each_reason_has_a_name_a_mark_and_words() {
        let limits = (0..Resource::COUNT as u8).map(Binding::Limit);
        let others = (1..Resource::COUNT as u8).map(Binding::Others);
        let all: Vec<Binding> = OTHERS.into_iter().chain(limits).chain(others).collect();
        for one in &all {
            assert!((2..=4).contains(&one.mark().len()) && !one.words().is_empty(), "{one:?}");
        }
        let mut names: Vec<&str> = all.iter().map(|one| one.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Resource::COUNT + 7);
    }
}
