//! A class that has moved all that it may move in all: told once, each time.

use discnice_escape::Foreign;
use discnice_sys::block::BlockId;
use discnice_units::Bytes;

use crate::classes::{self, MappedClass};
use crate::family::Family;
use crate::output::tell;

/// The totals that it was told of last, by the blocks of their classes.
#[derive(Debug, Default)]
pub struct Teller {
    told: Vec<(BlockId, Bytes)>,
}

impl Teller {
    /// Tells of each class that has used up its total, once. One that may move more is told of again.
    pub fn look(&mut self, family: &Family) {
        let mut totals = Vec::new();
        for found in family.classes() {
            let Some(total) = total(found) else { continue };
            if !self.told.contains(&(found.block, total)) {
                tell!("discnice: {}", told(found));
            }
            totals.push((found.block, total));
        }
        self.told = totals;
    }
}

/// The total, if it is used up. What a class is given may be used up again before the next look.
pub fn total(found: &MappedClass) -> Option<Bytes> {
    found.class.disk_total().filter(|_| found.class.is_used_up())
}

/// What is to be done about it, in words.
pub fn told(found: &MappedClass) -> String {
    let name = found.name();
    let (most, name) = (found.class.disk_total(), Foreign::text(&name));
    let most = most.map_or_else(String::new, |most| format!(" of {most}"));
    // A child's class has what its parent's has.
    let parent = found.class.parent().and_then(classes::name_of);
    let set = parent.as_deref().map_or(name, Foreign::text);
    format!(
        "class {name} has used up its disk total{most} and is held; `discnice class set {set} --disk-total +SIZE` lets it \
         move more"
    )
}

/// Returns in words how much of the total is used; `None` without a bound.
pub fn state(most: Option<Bytes>, used: Bytes) -> Option<String> {
    most.map(|most| format!("{used} of {most}"))
}
