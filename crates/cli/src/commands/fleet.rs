//! `discnice fleet`: budgets that many machines share.

use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, Subcommand};
use discnice_escape::Foreign;
use discnice_fleet::table::{NodeRow, Table};
use discnice_fleet::{Address, Fault, Link, Settings};
use discnice_sys::time;
use discnice_units::Rate;
use serde::Serialize;

use super::fleet_settings::{SettingsArgs, described};
use super::fleet_up::Up;
use crate::classes;
use crate::config::ConfigFiles;
use crate::fleet::Share;
use crate::output::{self, Lines, say, tell};

const EXAMPLES: &str = "\
Examples:
  discnice fleet up --cap 20M                            a server on this machine, to try it out
  discnice fleet set rediss://admin@files/backup --cap 600M --nodes 50
  discnice fleet set backup --cap 300M                   the budget of class backup in config.toml
  discnice fleet status                                  how much of each budget each machine has";

/// Share a class's budget with other machines, through a Redis or Valkey server
///
/// A class in config.toml with the key `fleet = "rediss://USER@HOST/CLASS"` leases a part of the budget that is set on that
/// server. All machines together never move more than the cap of the budget.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show budgets, and how much of them each machine has
    Status {
        /// Address of a budget, or a class in config.toml [default: all classes that share a budget]
        #[arg(value_name = "ADDRESS|CLASS", value_parser = NonEmptyStringValueParser::new())]
        place: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a budget on a server, or change it
    Set(Set),
    Up(Up),
}

#[derive(Debug, ClapArgs)]
struct Set {
    /// Address of the budget, with a user that may set it, or a class in config.toml
    #[arg(value_name = "ADDRESS|CLASS", value_parser = NonEmptyStringValueParser::new())]
    place: String,
    #[command(flatten)]
    settings: SettingsArgs,
}

impl Args {
    /// Does it.
    ///
    /// # Errors
    /// One line: which server or setting is wrong.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Status { place, json } => status(place.as_deref(), json),
            Action::Set(set) => set.run(),
            Action::Up(up) => up.run(),
        }
    }
}

/// An address, or the one that the configuration has for a class.
fn address(place: &str) -> anyhow::Result<Address> {
    if place.contains("://") {
        return Ok(Address::parse(place)?);
    }
    let config = ConfigFiles::load()?;
    let text = config.fleet(place).ok_or_else(|| {
        anyhow!(
            "config.toml has no class {} with a fleet; give its name or an address",
            Foreign::text(place)
        )
    })?;
    Ok(Address::parse(text)?)
}

impl Set {
    fn run(self) -> anyhow::Result<ExitCode> {
        let address = address(&self.place)?;
        let mut link = Link::open(&address).with_context(|| address.to_string())?;
        let before = match link.settings() {
            Err(Fault::OtherVersion(_)) => None,
            before => before.with_context(|| address.to_string())?,
        };
        let settings = self.settings.over(before)?;
        link.set(&settings).with_context(|| address.to_string())?;
        say!("{address}: {}", described(&settings))?;
        if let Err(fault) = link.save() {
            tell!(
                "discnice: the server did not save it, so it is lost when that is restarted: {fault}"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// One budget, as `--json` prints it. Rates are bytes per second.
#[derive(Debug, Serialize)]
struct Budget {
    /// The class on this machine; `null` for an address.
    class: Option<String>,
    address: String,
    /// What is wrong, in words; then nothing else is known of the server.
    error: Option<String>,
    /// What this machine's class has; `null` while it does not exist.
    here: Option<Share>,
    cap: Option<u64>,
    floor: Option<u64>,
    nodes_max: Option<u64>,
    lease_seconds: Option<f64>,
    /// For how long the server, which was restarted, only renews what machines report to have.
    learning_seconds: f64,
    nodes: Vec<Machine>,
}

/// One machine of a budget.
#[derive(Debug, Serialize)]
struct Machine {
    name: String,
    /// What it may move, its floor included.
    has: u64,
    /// What it could use; the cap for as much as it can get.
    wants: u64,
    weight: u32,
    /// Whether it has missed renewals.
    cut_off: bool,
    forgotten_in_seconds: f64,
}

impl Machine {
    fn of(row: &NodeRow, settings: &Settings) -> Self {
        Self {
            name: row.name.clone(),
            has: row.has.saturating_add(settings.floor.get()),
            wants: row.wants.saturating_add(settings.floor.get()).min(settings.cap.get()),
            weight: row.weight,
            cut_off: row.is_cut_off(settings),
            forgotten_in_seconds: row.forgotten_in as f64 / 1e3,
        }
    }
}

impl Budget {
    fn of(class: Option<&str>, text: &str) -> Self {
        let table = Address::parse(text)
            .and_then(|address| Link::open(&address).and_then(|mut link| link.table()));
        // Without a password, even where it is no address.
        let address =
            Address::parse(text).map_or_else(|_| "?".into(), |address| address.to_string());
        let found = class.and_then(classes::find);
        let here = found.and_then(|found| Share::of(found.class, time::now()));
        let error = table.as_ref().err().map(|why| output::without_numbers(&why.to_string()));
        let table: Option<Table> = table.ok();
        let settings = table.as_ref().map(|table| table.settings);
        Self {
            class: class.map(str::to_owned),
            address,
            error,
            here,
            cap: settings.map(|settings| settings.cap.get()),
            floor: settings.map(|settings| settings.floor.get()),
            nodes_max: settings.map(|settings| settings.nodes),
            lease_seconds: settings.map(|settings| settings.lease as f64 / 1e3),
            learning_seconds: table.as_ref().map_or(0.0, |table| table.learning as f64 / 1e3),
            nodes: table.as_ref().map_or_else(Vec::new, |table| {
                table.nodes.iter().map(|row| Machine::of(row, &table.settings)).collect()
            }),
        }
    }

    fn print(&self, lines: &mut Lines) {
        let name = self.class.as_deref().unwrap_or("-");
        let has: u64 = self.nodes.iter().map(|one| one.has).fold(0, u64::saturating_add);
        lines.push(format_args!("{:<24} {}", name, self.address));
        if let Some(share) = &self.here {
            let told = share.told().map_or_else(String::new, |told| format!("; {told}"));
            lines.push(format_args!("  this machine may move {}{told}", share.rate()));
        }
        if let Some(error) = &self.error {
            lines.push(format_args!("  {error}"));
            return;
        }
        let cut_off = self.nodes.iter().filter(|one| one.cut_off).count();
        lines.push(format_args!(
            "  {} of {} in use by {} of {} machines, {cut_off} of them cut off; floor {}, lease {:.0} s",
            Rate::per_second(has.max(1)),
            rate(self.cap.unwrap_or(1)),
            self.nodes.len(),
            self.nodes_max.unwrap_or(0),
            rate(self.floor.unwrap_or(1)),
            self.lease_seconds.unwrap_or(0.0)
        ));
        if self.learning_seconds > 0.0 {
            lines.push(format_args!(
                "  the server was restarted: for {:.0} s more it only renews what machines have",
                self.learning_seconds
            ));
        }
        self.print_machines(lines);
    }

    fn print_machines(&self, lines: &mut Lines) {
        if !self.nodes.is_empty() {
            lines.push(format_args!(
                "  {:<40} {:>12} {:>12} {:>7}",
                "MACHINE", "HAS", "WANTS", "WEIGHT"
            ));
        }
        for machine in &self.nodes {
            let all = self.cap.is_some_and(|cap| machine.wants >= cap);
            let wants = if all { "all".into() } else { rate(machine.wants) };
            let state = if machine.cut_off {
                format!("  cut off, forgotten in {:.0} s", machine.forgotten_in_seconds)
            } else {
                String::new()
            };
            lines.push(format_args!(
                "  {:<40} {:>12} {wants:>12} {:>7}{state}",
                Foreign::text(&machine.name),
                rate(machine.has),
                machine.weight
            ));
        }
    }
}

fn rate(bytes: u64) -> String {
    Rate::per_second(bytes).to_string()
}

fn status(place: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let config = ConfigFiles::load()?;
    let budgets: Vec<Budget> = match place {
        Some(place) if place.contains("://") => vec![Budget::of(None, place)],
        Some(place) => match config.fleet(place) {
            Some(text) => vec![Budget::of(Some(place), text)],
            None => bail!("config.toml has no class {} with a fleet", Foreign::text(place)),
        },
        None => config.fleets().map(|(name, text)| Budget::of(Some(name), text)).collect(),
    };
    if json {
        output::json(&serde_json::to_string_pretty(&budgets)?)?;
    } else if budgets.is_empty() {
        say!("No class of config.toml has a fleet: each budget is this machine's alone.")?;
    } else {
        let mut lines = Lines::default();
        budgets.iter().for_each(|budget| budget.print(&mut lines));
        lines.say()?;
    }
    let failed = budgets.iter().any(|budget| budget.error.is_some());
    Ok(ExitCode::from(if failed { crate::strict::OURS } else { 0 }))
}
