//! From a file's text to its settings; what is wrong is told with its place.

use std::ops::Range;
use std::path::Path;

use anyhow::anyhow;
use discnice_fleet::Address;
use discnice_progress::model::settings::{self, BadSetting};
use discnice_progress::model::{Parameter, Setting};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::{File, reason};
use crate::classes;
use crate::commands::limits::LimitArgs;
use crate::config::entry::Entry;
use crate::config::place::{Wrong, place};

/// A file of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<Entry>,
}

impl File {
    /// Parses what stands in the file at `path`.
    ///
    /// # Errors
    /// It is no configuration: file, line, column, reason.
    pub fn parse_bytes(bytes: &[u8], path: &Path) -> anyhow::Result<Self> {
        Self::parse(text_of(bytes, path)?, path)
    }

    /// Parses a file of rules.
    ///
    /// # Errors
    /// It is none: file, line, column, reason.
    pub(in crate::config) fn parse_rules(bytes: &[u8], path: &Path) -> anyhow::Result<Vec<Entry>> {
        let text = text_of(bytes, path)?;
        let mut file: RuleFile = read(text, path)?;
        for entry in &mut file.rule {
            entry.check(text, path).map_err(|(span, why)| at(text, path, span, &why))?;
        }
        Ok(file.rule)
    }

    pub(in crate::config) fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = read(text, path)?;
        config.check(text, path).map_err(|(span, why)| at(text, path, span, &why))?;
        Ok(config)
    }

    /// Refuses what the types of the file allow, and what is wrong nevertheless.
    fn check(&mut self, text: &str, path: &Path) -> Result<(), Wrong> {
        for entry in &mut self.rule {
            entry.check(text, path)?;
        }
        self.check_includes()?;
        for (name, limits) in &self.class {
            classes::check_name(name.as_ref().as_ref()).map_err(|why| (name.span(), why))?;
            check_class(limits.as_ref())
                .map_err(|why| (limits.span(), format!("class {}: {why}", name.as_ref())))?;
        }
        self.check_presets()?;
        if let Some(limits) = &self.default {
            check_default(limits.as_ref())
                .map_err(|why| (limits.span(), format!("default: {why}")))?;
        }
        for name in &self.locked {
            self.lockable(name.as_ref()).map_err(|why| (name.span(), why))?;
        }
        self.take_progress()
    }

    fn check_includes(&self) -> Result<(), Wrong> {
        for name in &self.include {
            let text = name.as_ref();
            if !text.starts_with('/') && (text.contains('/') || text.is_empty()) {
                return Err((name.span(), "include: give a name or an absolute path".into()));
            }
        }
        Ok(())
    }

    /// Takes over what is set of regulation by progress.
    fn take_progress(&mut self) -> Result<(), Wrong> {
        for (name, value) in &self.polite {
            let parameter = Parameter::named(name.as_ref())
                .map_err(|why| (name.span(), format!("polite: {why}")))?;
            self.progress.push(Setting { parameter, value: *value.as_ref() });
        }
        settings::apply(&mut discnice_progress::model::Config::default(), &self.progress)
            .map_err(|why| (self.blamed(&why), format!("polite: {why}")))
    }

    /// Where the parameter of regulation by progress stands that cannot be used, or the first of all if that has its default.
    fn blamed(&self, why: &BadSetting) -> Range<usize> {
        let wrong = why.parameter.map(Parameter::name);
        let named = self.polite.keys().find(|name| wrong == Some(name.as_ref()));
        named.or(self.polite.keys().next()).map_or(0..0, Spanned::span)
    }

    /// Refuses what is wrong in presets, and in what others count as busy from.
    fn check_presets(&self) -> Result<(), Wrong> {
        if let Some(busy) = &self.busy {
            let checked = busy.as_ref().check();
            checked.map_err(|why| (busy.span(), format!("busy: {why}")))?;
        }
        for (name, limits) in &self.preset {
            check_preset(limits.as_ref())
                .map_err(|why| (name.span(), format!("preset {}: {why}", name.as_ref())))?;
        }
        Ok(())
    }
}

/// Refuses what a named class cannot have.
fn check_class(limits: &LimitArgs) -> Result<(), String> {
    limits.check().map_err(|why| why.to_string())?;
    limits.program().map_or(Ok(()), check_program)?;
    match limits.fleet().map(Address::parse) {
        Some(Err(why)) => Err(why.to_string()),
        _ => Ok(()),
    }
}

/// Refuses what only a named class can have.
fn check_default(limits: &LimitArgs) -> Result<(), String> {
    if limits.message().is_some() {
        return Err("only a named class has a message; give it to [class.session]".into());
    }
    limits.check().map_err(|why| why.to_string())?;
    if limits.fleet().is_some() {
        return Err("only a named class can share a budget; give it to [class.NAME]".into());
    }
    if limits.program().is_some() {
        return Err(
            "only a named class can have a policy of your own; give it to [class.NAME]".into()
        );
    }
    Ok(())
}

/// Refuses what a kind of jobs cannot have.
fn check_preset(limits: &LimitArgs) -> Result<(), String> {
    if limits.message().is_some() || limits.fleet().is_some() || limits.program().is_some() {
        return Err("only limits; give the rest to [class.NAME]".into());
    }
    limits.check().map_err(|why| why.to_string())
}

/// Refuses what can be no command.
fn check_program(words: &[String]) -> Result<(), &'static str> {
    if words.iter().any(|word| word.contains('\0')) {
        return Err("no word of a program may contain a zero byte");
    }
    Ok(())
}

/// The text of a file.
fn text_of<'a>(bytes: &'a [u8], path: &Path) -> anyhow::Result<&'a str> {
    str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        at(&good, path, good.len()..good.len(), "not UTF-8")
    })
}

/// What a file's text says.
fn read<T: DeserializeOwned>(text: &str, path: &Path) -> anyhow::Result<T> {
    toml::from_str(text).map_err(|error| {
        let (span, why) = (error.span().unwrap_or(0..0), reason::told(error.message()));
        let key = reason::key_of(text, span.start).filter(|key| !why.starts_with(key));
        at(text, path, span, &key.map_or_else(|| why.clone(), |key| format!("{key}: {why}")))
    })
}

/// An error with its file, line and column.
fn at(text: &str, path: &Path, span: Range<usize>, why: &str) -> anyhow::Error {
    let (line, column) = place(text, span.start);
    anyhow!("{}:{line}:{column}: {why}", path.display())
}
