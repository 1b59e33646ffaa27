//! A class that has moved all that it may move in all: told once, each time.

use discnice_escape::Foreign;
use discnice_units::Bytes;

use crate::classes::Found;
use crate::output::tell;

/// The total that it was told of last.
#[derive(Debug, Default)]
pub struct Teller {
    told: Option<Bytes>,
}

impl Teller {
    /// Tells of it, unless that was done. A class that may move more is told of again.
    pub fn look(&mut self, found: &Found) {
        let total = total(found);
        if total.is_some() && total != self.told {
            tell!("discnice: {}", told(found));
        }
        self.told = total;
    }
}

/// The total, if it is used up. What a class is given may be used up again before the next look.
pub fn total(found: &Found) -> Option<Bytes> {
    found.class.disk_total().filter(|_| found.class.is_used_up())
}

/// What is to be done about it, in words.
pub fn told(found: &Found) -> String {
    let name = found.name();
    let (most, name) = (found.class.disk_total(), Foreign::text(&name));
    let most = most.map_or_else(String::new, |most| format!(" of {most}"));
    format!(
        "class {name} has used up its disk total{most} and is held; `discnice class set {name} --disk-total +SIZE` lets it \
         move more"
    )
}

/// How much is used of how much, in words; `None` without a bound.
pub fn state(most: Option<Bytes>, used: Bytes) -> Option<String> {
    most.map(|most| format!("{used} of {most}"))
}
