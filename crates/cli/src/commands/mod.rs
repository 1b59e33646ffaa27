//! The subcommands, one file each.

mod admit;
mod attach;
pub mod attach_limits;
mod by_mechanism;
mod cached;
mod calibrate;
pub(crate) mod class;
mod class_report;
mod complete;
mod detach;
mod doctor;
mod enter;
mod estimator;
mod explain;
mod file_status;
mod fleet;
mod fleet_settings;
mod fleet_up;
pub(crate) mod limits;
mod linger;
pub(crate) mod member_report;
mod metrics;
mod oci;
mod order;
mod pause;
mod policyd;
mod polite;
mod rate;
mod refresh;
mod refresh_worth;
pub(crate) mod rules;
mod run;
pub(crate) mod status;
mod status_polite;
mod status_table;
mod status_why;
mod summary;
mod top;
mod trace;
mod trace_target;
mod tuning;

use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Parser, Subcommand};

/// Colours of help, as of cargo(1).
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  discnice tar -cf /backup/home.tar ~    gives way to all others that use the disk
  discnice -d 5M rsync -a ~ /backup      at most 5 MiB/s of disk traffic
  discnice status                        what runs, how fast, and what limits it
  discnice help run                      all options of `run`, which the first two examples use";

/// Run background work without slowing down other programs on the machine
///
/// The limits hold for COMMAND and all its children; without a limit they give way to other programs.
/// `discnice COMMAND` is short for `discnice run COMMAND`.
#[derive(Debug, Parser)]
#[command(name = "discnice", version, max_term_width = 100, styles = STYLES, after_help = EXAMPLES)]
#[command(
    override_usage = "discnice [OPTIONS] COMMAND [ARGUMENTS]\n       discnice SUBCOMMAND ..."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Class(class::Args),
    #[command(visible_alias = "ps")]
    Status(status::Status),
    Top(top::Top),
    Metrics(metrics::Metrics),
    Fleet(fleet::Args),
    Attach(attach::Attach),
    Detach(detach::Detach),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Rules(rules::Args),
    Policyd(policyd::Policyd),
    Explain(explain::Explain),
    Trace(trace::Trace),
    Doctor(doctor::Doctor),
    Enter(enter::Enter),
    Admit(admit::Admit),
    Cached(cached::Cached),
    Calibrate(calibrate::Calibrate),
    Linger(linger::Linger),
    Order(order::Order),
    Refresh(refresh::Refresh),
    #[command(hide = true, disable_help_flag = true)]
    OciRuntime(oci::Oci),
    #[command(hide = true)]
    CompleteNames(complete::Complete),
}

impl Cli {
    /// Runs the chosen subcommand; returns the exit status.
    ///
    /// # Errors
    /// One line for people: what is wrong and what to do.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(run) => run.run(),
            Command::Class(class) => class.run(),
            Command::Status(status) => status.run(),
            Command::Top(command) => command.run(),
            Command::Metrics(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Trace(command) => command.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Enter(command) => command.run(),
            Command::Fleet(command) => command.run(),
            Command::Attach(command) => command.run(),
            Command::Detach(command) => command.run(),
            Command::Pause(command) => command.run(),
            Command::Resume(command) => command.run(),
            Command::Rules(command) => command.run(),
            Command::Policyd(command) => command.run(),
            Command::Admit(command) => command.run(),
            Command::Cached(command) => command.run(),
            Command::Calibrate(command) => command.run(),
            Command::Linger(command) => command.run(),
            Command::Order(command) => command.run(),
            Command::Refresh(command) => command.run(),
            Command::OciRuntime(command) => command.run(),
            Command::CompleteNames(command) => command.run(),
        }
    }
}
