//! What `run --summary` says at the end.

use discnice_escape::Foreign;
use discnice_estimator::Totals;
use discnice_ledger::policy::{Limits, Memory, Resource};
use discnice_units::{Bytes, Rate};

use crate::classes::MappedClass;
use crate::escapes::Escaped;
use crate::explanation;
use crate::guest;
use crate::output::tell;
use crate::report::{self, Course, WORTH_TELLING, Waited};

/// A line on standard error, as time(1); one of what was waited for, if anything was; and one for each process that was
/// not held.
pub fn tell_all(found: &MappedClass, course: &Course, waited: &Waited, escaped: &[Escaped]) {
    tell_traffic(found, course);
    if let Some(verdict) = report::verdict(found, course, waited) {
        tell!("discnice: {verdict}");
    }
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

fn tell_traffic(found: &MappedClass, course: &Course) {
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
    let each = if limits.per_child() { " each child" } else { "" };
    let rates = Some(words.join(", ") + each + explanation::when(limits.when()))
        .filter(|_| !words.is_empty());
    let in_all = limits.disk_total().map(|most| format!("{most} in all"));
    let least = limits.at_least().map(|least| format!("at least {least}"));
    let memory = Some(limits.memory()).filter(|memory| *memory != Memory::DEFAULT);
    let memory = memory.and_then(|memory| guest::bounds(memory, limits.guest()));
    let memory = memory.map(|bounds| format!("memory {bounds}"));
    let all: Vec<String> = rates.into_iter().chain(in_all).chain(least).chain(memory).collect();
    if all.is_empty() { "no limit".into() } else { format!("limit {}", all.join(", ")) }
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
        assert_eq!(limited(&always.with_per_child(true)), "limit 5 MiB/s each child");
        let busy = always.with_when(When::Busy).with_at_least(Some(rate("1M")));
        assert_eq!(limited(&busy), "limit 5 MiB/s while others are busy, at least 1 MiB/s");
        assert_eq!(limited(&Limits::UNLIMITED.with_when(When::Busy)), "no limit");
        let memory = Memory::DEFAULT.with_high("1G".parse().ok());
        let memory = Limits::UNLIMITED.with_memory(memory);
        assert_eq!(limited(&memory), "limit memory 512 MiB to 1 GiB");
    }
}
