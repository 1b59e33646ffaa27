//! What `run --summary` says at the end.

use discnice_escape::Foreign;
use discnice_estimator::Totals;
use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Bytes, Rate};

use crate::binding::Binding;
use crate::classes::Found;
use crate::escapes::Escaped;
use crate::explanation;
use crate::output::tell;
use crate::report::{Course, Waited};

/// Waits of less time in all are not told of.
const WORTH_TELLING: f64 = 0.05;

/// A line on standard error, as time(1); one of what was waited for, if anything was; and one for each process that was
/// not held.
pub fn tell_all(found: &Found, course: &Course, waited: &Waited, escaped: &[Escaped]) {
    tell_traffic(found, course);
    tell_waits(found, course, waited);
    let total = course.total();
    if total.yielded >= WORTH_TELLING {
        tell!("discnice: gave way on the network for {:.1} s", total.yielded);
    }
    if total.unheld > 0 {
        tell!(
            "discnice: of that {} escaped: it was counted, but nothing could hold it",
            Bytes::new(total.unheld)
        );
    }
    for one in escaped {
        let moved = one.bytes.map(|bytes| format!("; it moved {}", Bytes::new(bytes)));
        let (name, moved) = (Foreign::text(&one.name), moved.unwrap_or_default());
        tell!("discnice: NOT LIMITED: {name} ({}): {}{moved}", one.process, one.reason);
    }
    if found.class.predicts() {
        let Totals { predicted, account } = total.prediction;
        tell!("discnice: predicted {}, account {}", Bytes::new(predicted), Bytes::new(account));
    }
}

fn tell_traffic(found: &Found, course: &Course) {
    let (total, seconds) = (course.total(), course.elapsed().as_secs_f64());
    let amount = |one| Bytes::new(total.total(one));
    let [read, written] = [Resource::Read, Resource::Write].map(amount);
    let rate = (read.get() + written.get()) as f64 / seconds.max(1e-3);
    let mut line =
        format!("{seconds:.1} s, read {read}, wrote {written}: {}", Rate::per_second(rate as u64));
    let [sent, received] = [Resource::NetUp, Resource::NetDown].map(amount);
    if sent.get() + received.get() > 0 {
        line += &format!(", sent {sent}, received {received}");
    }
    let limits = found.class.limits();
    if !limits.rate(Resource::Metadata).is_unlimited() {
        line += &format!(", {} calls on names", total.total(Resource::Metadata));
    }
    tell!("discnice: {line} ({})", limited(&limits));
}

/// All rates that are limited, and when they are.
fn limited(limits: &Limits) -> String {
    let all = Resource::ALL.into_iter().filter(|one| !limits.rate(*one).is_unlimited());
    let words: Vec<String> = all
        .map(|one| match one {
            Resource::Total => limits.rate(one).to_string(),
            _ => explanation::rate(one, limits.rate(one)),
        })
        .collect();
    let rates =
        Some(words.join(", ") + explanation::when(limits.when())).filter(|_| !words.is_empty());
    let in_all = limits.disk_total().map(|most| format!("{most} in all"));
    let least = limits.at_least().map(|least| format!("at least {least}"));
    let all: Vec<String> = rates.into_iter().chain(in_all).chain(least).collect();
    if all.is_empty() { "no limit".into() } else { format!("limit {}", all.join(", ")) }
}

/// By the clock, and by threads where several waited at once.
fn tell_waits(found: &Found, course: &Course, waited: &Waited) {
    let (threads, seconds) =
        (course.total().waited + waited.stood(), course.elapsed().as_secs_f64());
    let parts = waited.parts(threads, seconds);
    let clock: f64 = parts.iter().map(|part| part.seconds).sum();
    if clock < WORTH_TELLING {
        return;
    }
    let limits = found.class.limits();
    let reasons: Vec<String> = parts
        .iter()
        .filter(|part| part.seconds >= WORTH_TELLING)
        .map(|part| format!("{:.1} s {}", part.seconds, reason(part.reason, &limits, waited)))
        .collect();
    tell!(
        "discnice: waited {clock:.1} of {seconds:.1} s ({threads:.1} s of all threads): {}",
        reasons.join(", ")
    );
}

fn reason(reason: Binding, limits: &Limits, waited: &Waited) -> String {
    match (reason, reason.resource()) {
        (Binding::Limit(_), Some(resource)) => {
            format!("for its limit ({})", limit(resource, limits.rate(resource)))
        }
        (Binding::Others(_) | Binding::Least, _) => {
            let most = waited.most_in_the_way();
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
    use discnice_ledger::policy::When;

    use super::*;

    #[test]
    fn a_limit_that_holds_only_while_others_are_busy_is_told_as_that() {
        let rate = |text: &str| text.parse().expect("a rate");
        let always = Limits::UNLIMITED.with(Resource::Total, rate("5M"));
        assert_eq!(limited(&always), "limit 5 MiB/s");
        let busy = always.with_when(When::Busy).with_at_least(Some(rate("1M")));
        assert_eq!(limited(&busy), "limit 5 MiB/s while others are busy, at least 1 MiB/s");
        assert_eq!(limited(&Limits::UNLIMITED.with_when(When::Busy)), "no limit");
    }

    #[test]
    fn a_limit_that_was_lifted_while_it_ran_is_told_as_that() {
        assert_eq!(limit(Resource::Write, Rate::UNLIMITED), "disk, writing, since lifted");
        assert_eq!(limit(Resource::Write, "5M".parse().expect("a rate")), "disk, writing: 5 MiB/s");
    }
}
