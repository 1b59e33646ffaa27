//! The class of a command, and its limits.

use discnice_ledger::policy::Limits;
use discnice_sys::process;

use super::Run;
use crate::classes::{self, MappedClass, Origin};
use crate::commands::class;
use crate::commands::limits::LimitArgs;
use crate::config::{self, ConfigFiles};
use crate::holding::Unheld;
use crate::output::{self, tell};
use crate::strict::{HINT, Strictness};
use crate::{busy, fleet, presets};

impl Run {
    /// The limits of a class that does not exist yet. One that gets no numbers gives way.
    pub(super) fn initial_limits(&self) -> anyhow::Result<Limits> {
        if let Some(preset) = &self.preset {
            return self.limits.over(presets::limits(&ConfigFiles::load()?, preset)?);
        }
        let numbers = self.limits.has_threshold();
        if self.class.is_none() && (numbers || self.limits.is_empty() && self.polite.wanted()) {
            return self.limits.over(Limits::UNLIMITED);
        }
        let config = ConfigFiles::load()?;
        let section = self.class.as_ref().map(|name| config.class(name)).transpose()?.flatten();
        section
            .map_or_else(|| config.limits_of_new(&self.limits), |limits| self.limits.over(limits))
    }

    /// Whether the disk rate is one that was given for the job or its class, in options or the configuration, and not the
    /// built-in default.
    pub(super) fn has_own_disk(&self) -> bool {
        if self.class.is_some() || self.limits.has_threshold() {
            return true;
        }
        let Ok(config) = ConfigFiles::load() else { return false };
        match &self.preset {
            Some(preset) => config.preset(preset).is_some_and(LimitArgs::has_disk),
            None => config.has_default_disk(),
        }
    }

    /// Those limits as far as the site permits them for the class.
    pub(super) fn permitted(&self, limits: Limits) -> Limits {
        if !self.is_limited() {
            return limits;
        }
        // No name of a class that is made for this command stands in a configuration.
        config::permitted(self.class.as_deref().unwrap_or_default(), limits)
    }

    /// Changes a class that is there already: by the preset, and then by the options.
    fn change(&self, found: &MappedClass) -> anyhow::Result<()> {
        let (config, before) = (ConfigFiles::load()?, found.class.limits());
        let wanted = match &self.preset {
            Some(preset) => self.limits.over(presets::over(&config, preset, before)?)?,
            None => config.limits_of_existing(&self.limits, before)?,
        };
        class::apply(found, wanted)
    }

    /// The class with its limits; the second value tells whether it was made.
    pub(super) fn prepare(
        &self,
        limits: &Limits,
        strict: Strictness,
    ) -> Result<(MappedClass, bool), Unheld> {
        // The registry, the board, the library's copy and policyd all lie in it.
        discnice_paths::keep_runtime();
        let command = self.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let base = command.rsplit('/').next().unwrap_or_default();
        let name =
            self.class.clone().unwrap_or_else(|| classes::automatic_name(base, process::id()));
        let (found, origin) = classes::find_or_create(&name).map_err(Unheld::NoClass)?;
        let new = origin == Origin::New;
        if new {
            if self.class.is_some() && output::is_watched() {
                tell_new(&name);
            }
            if let Err(error) = busy::prepare(limits) {
                let unheld = Unheld::NoBoard(error);
                if strict.0 {
                    let _ = found.remove();
                    return Err(unheld);
                }
                tell!("discnice: {unheld}{HINT}");
            }
            found.set_limits(limits);
        } else if !self.limits.is_empty() || self.preset.is_some() {
            let is_unused = found.class.living(process::exists).next().is_none();
            if is_unused && self.limits.has_new_total() {
                // The jobs before are over.
                found.class.count_anew();
            }
            self.change(&found).map_err(Unheld::NoClass)?;
        }
        if self.class.is_some() {
            let config = ConfigFiles::load().map_err(Unheld::NoClass)?;
            fleet::follow(&found, &config);
        }
        self.estimator.apply(&found);
        if found.class.is_paused() && output::is_watched() {
            tell!("discnice: class {name} is paused; `discnice resume {name}` lets it go on");
        }
        Ok((found, new))
    }
}

/// Tells of a class that is made, as its name may have a typing error.
fn tell_new(name: &str) {
    match classes::similar(name) {
        Some(similar) => tell!("discnice: new class {name}; there is also {similar}"),
        None => tell!("discnice: new class {name}"),
    }
}
