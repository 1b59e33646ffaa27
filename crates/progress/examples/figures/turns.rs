//! Several jobs on the simulated machine that run one at a time, as a superintendent lets them.

use discnice_progress::model::superintendent::{
    DeclaredResources, State, Thread, next_to_run, usage_at_entry, usage_decay,
};
use discnice_units::Nanos;

use crate::sim::{Job, Load, moment};

const HUNG: Nanos = Nanos(10 * Nanos::SECOND.0);

/// A job with its priority and the loads that it meets.
pub struct Member<'a> {
    pub job: &'a mut Job,
    pub weight: f64,
    pub load: Load,
}

/// Lets the members take turns, a testpoint each, from their common start to `end` seconds.
pub fn run(members: &mut [Member<'_>], end: f64) {
    let mut threads: Vec<Thread> = members.iter().map(|member| away(member.weight)).collect();
    let mut now = 0.0;
    while now < end {
        enter(members, &mut threads, now);
        let Some(next) = next_to_run(&threads, moment(now), HUNG) else {
            now = members.iter().map(|member| member.job.at).fold(f64::INFINITY, f64::min);
            continue;
        };
        let Member { job, load, .. } = &mut members[next];
        if job.at < now {
            job.at = now;
            job.regulator.resumed(moment(now), false);
        }
        job.run(load, f64::INFINITY, 1);
        let to = job.stretches.last().map_or(now, |stretch| stretch.to);
        threads[next].usage += to - now;
        let decay = usage_decay(moment(to).since(moment(now)));
        threads.iter_mut().for_each(|thread| thread.usage *= decay);
        // A job's own clock stands where its suspension ends.
        threads[next].state = if job.at > to { State::Away } else { State::Waiting(moment(to)) };
        now = to;
    }
}

fn away(weight: f64) -> Thread {
    Thread { state: State::Away, weight, usage: 0.0, resources: DeclaredResources::ALL }
}

/// Lets threads wait from the end of their suspension on.
fn enter(members: &[Member<'_>], threads: &mut [Thread], now: f64) {
    for (i, member) in members.iter().enumerate() {
        if threads[i].state == State::Away && member.job.at <= now {
            threads[i].usage = usage_at_entry(threads, &threads[i]);
            threads[i].state = State::Waiting(moment(member.job.at));
        }
    }
}
