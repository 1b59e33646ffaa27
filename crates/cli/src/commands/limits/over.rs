//! Limits on top of those before, and within others.

use anyhow::{Context, anyhow};
use discnice_ledger::policy::{Choice, Limits, Memory, Pace, Resource, When};
use discnice_units::Rate;

use super::value::{Ceiling, PolicyArg, SleepBound, Total};
use super::{Cache, LimitArgs, Shared};
use crate::commands::rate::GivenLeast;

impl LimitArgs {
    /// The policy on top of that before; another policy has its own window.
    fn pace(&self, before: Pace) -> Pace {
        let pace = match &self.policy {
            Some(PolicyArg::Named(choice)) if *choice == before.policy => before,
            Some(PolicyArg::Named(choice)) => before.with_policy(*choice).with_window(None),
            Some(PolicyArg::Program(_)) => before.with_policy(Choice::Program).with_window(None),
            None => before,
        };
        let pace = if self.window.is_some() { pace.with_window(self.window) } else { pace };
        let pace =
            self.shortest_sleep.map_or(pace, |SleepBound(sleep)| pace.with_shortest_sleep(sleep));
        self.longest_sleep.map_or(pace, |SleepBound(sleep)| pace.with_longest_sleep(sleep))
    }

    /// The thresholds of memory on top of those before.
    fn memory(&self, before: Memory) -> Memory {
        let memory = self.memory_low.map_or(before, |low| before.with_low(low));
        match self.memory_high {
            Some(Ceiling(high)) => memory.with_high(high),
            None => memory,
        }
    }

    /// These limits on top of what held before.
    ///
    /// # Errors
    /// The limits contradict each other, or are parts of what was never measured.
    pub fn over(&self, before: Limits) -> anyhow::Result<Limits> {
        let limits = self.laid_over(before)?;
        limits.check()?;
        Ok(limits)
    }

    /// These limits on top of what held before; a part that is then allowed more than the whole is allowed as much.
    ///
    /// # Errors
    /// They are parts of what was never measured.
    pub fn fitted_over(&self, before: Limits) -> anyhow::Result<Limits> {
        Ok(fitted(self.laid_over(before)?))
    }

    fn laid_over(&self, before: Limits) -> anyhow::Result<Limits> {
        let settings = match self.at_least {
            Some(least) => self.settings_over(before).with_at_least(least.resolve()?),
            None => self.settings_over(before),
        };
        self.all_given().try_fold(settings, |limits, (one, given)| {
            Ok(limits.with(one, given.resolve(one).with_context(|| one.option())?))
        })
    }

    /// The limits where they are tighter than what is given here, and this elsewhere.
    ///
    /// # Errors
    /// What is given is a part of what was never measured.
    pub fn bound(&self, limits: Limits) -> anyhow::Result<Limits> {
        let mut bound = limits;
        for (one, given) in self.all_given() {
            let most = given.resolve(one).with_context(|| one.option())?;
            bound = bound.with(one, bound.rate(one).min(most));
        }
        // A limit that held only while others are busy, or for each child, would be less of one.
        let has_rates = self.all_given().next().is_some();
        if self.when == Some(When::Always) || has_rates && self.when != Some(When::Busy) {
            bound = bound.with_when(When::Always);
        }
        if has_rates && self.per_child != Some(true) {
            bound = bound.with_per_child(false);
        }
        if let Some(most) = self.weight {
            bound = bound.with_weight(bound.weight().min(most));
        }
        if let Some(Total::Most(Some(most))) = self.disk_total {
            let total = bound.disk_total().map_or(most, |total| total.min(most));
            bound = bound.with_disk_total(Some(total));
        }
        if let Some(most) = self.at_least.map(GivenLeast::resolve).transpose()?.flatten() {
            bound = bound.with_at_least(bound.at_least().map(|least| least.min(most)));
        }
        if let Some(Ceiling(Some(most))) = self.memory_high {
            let high = bound.memory().high().map_or(most, |high| high.min(most));
            bound = bound.with_memory(bound.memory().with_high(Some(high)));
        }
        let either = |wanted: Option<bool>, has: bool| has || wanted == Some(true);
        let protects = self.cache.map(|cache| cache == Cache::Protect);
        let yields = self.uplink.map(|shared| shared == Shared::Yield);
        Ok(fitted(
            bound
                .with_guest(either(self.guest, bound.guest()))
                .with_loopback(either(self.net_loopback, bound.loopback()))
                .with_cache_protected(either(protects, bound.protects_cache()))
                .with_uplink_yielded(either(yields, bound.yields_uplink())),
        ))
    }

    /// Checks what can be checked without a measured disk.
    ///
    /// # Errors
    /// The limits contradict each other.
    pub fn check(&self) -> anyhow::Result<()> {
        self.at_least.map_or(Ok(()), GivenLeast::check)?;
        for (one, given) in self.all_given() {
            given.check(one).map_err(|why| anyhow!("{}: {why}", one.option()))?;
        }
        let plain = self.all_given().filter_map(|(one, given)| Some((one, given.plain()?)));
        let least = self.at_least.and_then(GivenLeast::plain);
        let settings = self.settings_over(Limits::UNLIMITED).with_at_least(least);
        let limits = plain.fold(settings, |limits, (one, rate)| limits.with(one, rate));
        Ok(limits.check()?)
    }

    /// All but the rates.
    fn settings_over(&self, before: Limits) -> Limits {
        before
            .with_loopback(self.net_loopback.unwrap_or(before.loopback()))
            .with_when(self.when.unwrap_or(before.when()))
            .with_weight(self.weight.unwrap_or(before.weight()))
            .with_guest(self.guest.unwrap_or(before.guest()))
            .with_cache_protected(
                self.cache.map_or(before.protects_cache(), |cache| cache == Cache::Protect),
            )
            .with_uplink_yielded(
                self.uplink.map_or(before.yields_uplink(), |shared| shared == Shared::Yield),
            )
            .with_per_child(self.per_child.unwrap_or(before.per_child()))
            .with_memory(self.memory(before.memory()))
            .with_disk_total(
                self.disk_total
                    .map_or(before.disk_total(), |total| total.over(before.disk_total())),
            )
            .with_pace(self.pace(before.pace()))
    }
}

/// The limits, with no part allowed more than its whole, no least rate above a limit, and no low threshold of memory above the high one.
fn fitted(limits: Limits) -> Limits {
    let mut fitted = limits;
    for part in Resource::ALL {
        if let Some(whole) = part.whole().filter(|_| !fitted.rate(part).is_unlimited()) {
            fitted = fitted.with(part, fitted.rate(part).min(fitted.rate(whole)));
        }
    }
    let most = [Resource::Total, Resource::Read, Resource::Write].map(|one| fitted.rate(one));
    let most = most.into_iter().min().unwrap_or(Rate::UNLIMITED);
    fitted = fitted.with_at_least(fitted.at_least().map(|least| least.min(most)));
    let memory = fitted.memory();
    match memory.high().filter(|_| memory.contradicts_itself()) {
        Some(high) => fitted.with_memory(memory.with_low(high)),
        None => fitted,
    }
}
