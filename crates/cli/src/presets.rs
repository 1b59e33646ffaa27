//! Limits for kinds of jobs, by name: some of our own, and those of the configuration. Each is laid over the polite default.

use anyhow::Context;
use discnice_ledger::policy::Limits;

use crate::commands::limits::LimitArgs;
use crate::config::ConfigFiles;
use crate::{complaint, polite};

/// Ours, as they would stand in the configuration.
pub const OURS: [(&str, &str); 6] = [
    ("backup", "meta-ops = 2000"),
    ("sync", "meta-ops = 2000\nnet = \"8M\""),
    ("build", "cache = \"keep\""),
    ("scan", "meta-ops = 1000"),
    ("agent", "cache = \"keep\"\nmeta-ops = 5000\nmemory-high = \"8G\"\ndisk-total = \"100G\""),
    ("download", "net-down = \"4M\""),
];

/// The limits of a new job with this preset.
///
/// # Errors
/// There is none of this name, or its limits contradict each other.
pub fn limits(config: &ConfigFiles, name: &str) -> anyhow::Result<Limits> {
    over(config, name, polite::limits())
}

/// What the preset says on top of what held before.
///
/// # Errors
/// As [`limits`].
pub fn over(config: &ConfigFiles, name: &str, before: Limits) -> anyhow::Result<Limits> {
    if let Some(section) = config.preset(name) {
        return section.fitted_over(before);
    }
    let ours = OURS.iter().find(|(one, _)| *one == name);
    let (_, text) = ours.with_context(|| unknown(config, name))?;
    let section: LimitArgs = toml::from_str(text).context("a preset of ours")?;
    section.fitted_over(before)
}

fn unknown(config: &ConfigFiles, name: &str) -> String {
    let mut names: Vec<&str> = OURS.iter().map(|(one, _)| *one).chain(config.presets()).collect();
    names.sort_unstable();
    names.dedup();
    let meant = complaint::meant(name, &names);
    let meant = meant.map_or_else(String::new, |one| format!("did you mean {one}? "));
    format!("no preset {name:?}; {meant}there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use discnice_ledger::policy::{Resource, When};
    use discnice_units::Bytes;

    use super::*;

    #[test]
    fn each_of_ours_is_polite_and_says_what_it_says() {
        for (name, text) in OURS {
            let section: LimitArgs = toml::from_str(text).unwrap();
            let limits = section.over(polite::limits()).unwrap();
            assert!(limits.when() == When::Busy && limits.guest(), "{name}");
            assert!(!limits.rate(Resource::Total).is_unlimited(), "{name}");
            if name == "agent" {
                assert_eq!(limits.disk_total().map(Bytes::get), Some(100 << 30));
            }
        }
    }
}
