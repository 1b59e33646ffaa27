//! What a job waited for and for how long, in one sentence.

use discnice_ledger::policy::{Limits, Resource};
use discnice_units::Rate;

use super::course::Course;
use super::waited::Waited;
use crate::binding::Binding;
use crate::classes::MappedClass;
use crate::explanation;

/// Waits of less time, in seconds, are not told of.
pub const WORTH_TELLING: f64 = 0.05;

/// A sentence without its subject: time by the clock, time of all threads, and each reason with its part, longest first.
/// None if the job waited for nothing that is worth telling.
pub fn verdict(found: &MappedClass, course: &Course, waited: &Waited) -> Option<String> {
    let threads = course.total().waited + waited.stood();
    let seconds = course.elapsed().as_secs_f64();
    let parts = waited.parts(threads, seconds);
    let clock: f64 = parts.iter().map(|part| part.seconds).sum();
    if clock < WORTH_TELLING {
        return None;
    }
    let (limits, most) = (found.class.limits(), waited.most_in_the_way());
    let reasons: Vec<String> = parts
        .iter()
        .filter(|part| part.seconds >= WORTH_TELLING)
        .map(|part| {
            format!("{:.1} s {}", part.seconds, reason(part.reason, &limits, most.as_deref()))
        })
        .collect();
    let reasons = reasons.join(", ");
    Some(format!("waited {clock:.1} of {seconds:.1} s ({threads:.1} s of all threads): {reasons}"))
}

/// `most` is the process of others that moved most meanwhile.
fn reason(reason: Binding, limits: &Limits, most: Option<&str>) -> String {
    match (reason, reason.resource()) {
        (Binding::Limit(_), Some(resource)) => {
            format!("for its limit ({})", limit(resource, limits.rate(resource)))
        }
        (Binding::Others(_) | Binding::Least, _) => {
            let most = most.map_or_else(String::new, |most| format!(" (most: {most})"));
            format!("for {}{most}", reason.words())
        }
        (Binding::Paused, _) => "while it was paused".into(),
        (Binding::UsedUp, _) => match limits.disk_total() {
            Some(most) => format!("for its disk total ({most}), which was used up"),
            None => format!("for {}", reason.words()),
        },
        _ => format!("for {}", reason.words()),
    }
}

/// A limit that was waited for, as it is at the end.
fn limit(resource: Resource, rate: Rate) -> String {
    match rate {
        Rate::UNLIMITED => format!("{}, since lifted", explanation::name(resource)),
        rate => explanation::rate(resource, rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_lifted_while_it_ran_is_told_as_that() {
        assert_eq!(limit(Resource::Write, Rate::UNLIMITED), "disk, writing, since lifted");
        assert_eq!(limit(Resource::Write, "5M".parse().expect("a rate")), "disk, writing: 5 MiB/s");
    }

    #[test]
    fn others_are_named_where_one_was_seen() {
        let of = |most| reason(Binding::Others(0), &Limits::UNLIMITED, most);
        assert_eq!(of(None), "for others on its disks");
        assert_eq!(of(Some("dd, process 7")), "for others on its disks (most: dd, process 7)");
    }
}
