//! `discnice class`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args as ClapArgs, Subcommand};
use discnice_ledger::policy::Limits;
use discnice_sys::process;
use discnice_watcher::daemon::client::Confirmation;

use super::limits::LimitArgs;
use super::status;
use crate::classes::{self, MappedClass, Origin};
use crate::config::{self, ConfigFiles};
use crate::output::counted;
use crate::running::Running;
use crate::{busy, fleet, guest, own_policy, watching};

const EXAMPLES: &str = "\
Examples:
  discnice class list                     all classes
  discnice class set nightly --disk 50M   create it or change its limits, within 100 ms
  discnice class show nightly --json      its members and totals, as JSON
  discnice class rm nightly               remove it";

/// List, show, change or remove classes
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all classes
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one class with its members
    Show {
        /// Name of the class
        #[arg(value_parser = classes::known_name_parser())]
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a class or change its limits, which its members follow at once
    Set {
        /// Name of the class
        #[arg(value_parser = classes::known_name_parser())]
        name: String,
        #[command(flatten)]
        limits: Box<LimitArgs>,
    },
    /// Remove a class that has no members
    Rm {
        /// Name of the class
        #[arg(value_parser = classes::known_name_parser())]
        name: String,
        /// Remove it even if it has members, which then go on without limits
        #[arg(long)]
        force: bool,
    },
}

impl Args {
    /// Performs the action.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::List { json } => status::print(&classes::all()?, json, false),
            Action::Show { name, json } => status::print(&[classes::existing(&name)?], json, true),
            Action::Set { name, limits } => set(&name, &limits),
            Action::Rm { name, force } => remove(&name, force),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn set(name: &str, limits: &LimitArgs) -> anyhow::Result<()> {
    if limits.is_empty() {
        bail!("no limit given for class {name}; say for example --disk 5M or --disk unlimited");
    }
    let before = match classes::find(name) {
        Some(found) => found.class.limits(),
        // Only `run` and `attach` make those.
        None if classes::is_automatic(name) => classes::existing(name)?.class.limits(),
        None => ConfigFiles::load()?.class(name)?.unwrap_or(Limits::UNLIMITED),
    };
    // Before anything is made.
    let wanted = limits.over(before)?;
    own_policy::check(name, &wanted, &ConfigFiles::load()?)?;
    if classes::is_automatic(name) {
        return change(&classes::existing(name)?, limits);
    }
    let (found, origin) = classes::find_or_create(name)?;
    if origin == Origin::New { apply(&found, wanted) } else { change(&found, limits) }?;
    fleet::follow(&found, &ConfigFiles::load()?);
    Ok(())
}

/// Changes limits and wakes all threads that wait by the old ones.
pub fn change(found: &MappedClass, limits: &LimitArgs) -> anyhow::Result<()> {
    apply(found, limits.over(found.class.limits())?)
}

/// Sets limits, unless they contradict each other, and wakes all threads that wait by the old ones.
pub fn apply(found: &MappedClass, limits: Limits) -> anyhow::Result<()> {
    limits.check()?;
    let limits = config::permitted(&found.name(), limits);
    busy::prepare(&limits)?;
    found.set_limits(&limits);
    let is_minded = guest::memory(found.class).is_some()
        || own_policy::is_own(&limits)
        || found.class.minds_traffic();
    if is_minded && found.class.living(process::exists).next().is_some() {
        // It may not have been watched; a daemon that was asked already only looks again.
        watching::watch(found, Confirmation::Unneeded)
            .context("limited, but not in memory, not by a policy of your own, and not on the network without the library")?;
    }
    Ok(())
}

fn remove(name: &str, force: bool) -> anyhow::Result<()> {
    let found = classes::existing(name)?;
    let members = Running::all(&found).count();
    if members > 0 && !force {
        let members = counted(members, "member", "members");
        bail!("class {name} has {members}; end all of them, or say --force to free them of limits");
    }
    found.set_limits(&Limits::UNLIMITED);
    found.set_paused(false);
    found.remove()
}
