//! The arguments of `discnice-eval disk`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use discnice_units::Bytes;

use super::down::Busy;
use super::profile::ProfileName;
use super::state::{Owner, Places};
use super::up::Wanted;
use super::{down, drop_caches, server, stats, up};
use crate::{stop, users};

/// Make, remove or look at the emulated disk (needs root)
#[derive(Debug, Subcommand)]
pub enum DiskCommand {
    /// Make the disk and mount it
    Up(UpArguments),
    /// Unmount and remove the disk, or what a crash has left of it
    Down {
        /// Even if it is in use
        #[arg(long)]
        force: bool,
    },
    /// Drop the page cache of this disk only
    Drop,
    /// Print what the device and the disk model have counted
    Stats {
        /// As JSON: the record of the disk, `device` and `model`
        #[arg(long)]
        json: bool,
    },
    /// Serve the image (started by `up`)
    #[command(hide = true)]
    Serve {
        #[arg(long)]
        profile: ProfileName,
        #[arg(long)]
        size: Bytes,
    },
}

/// What kind of disk.
#[derive(Debug, Clone, Args)]
pub struct UpArguments {
    /// Which disk to emulate
    #[arg(long, value_enum, default_value_t = ProfileName::Hdd)]
    profile: ProfileName,
    /// Size; memory is used as it is written
    #[arg(long, default_value = "4G")]
    size: Bytes,
    /// Where to mount it; made if missing
    #[arg(long, value_name = "DIR", default_value = "/mnt/discnice-eval")]
    mount: PathBuf,
    /// User with write access to it [default: the user that called sudo, else `nobody`]
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// I/O scheduler
    #[arg(long, default_value = "mq-deadline")]
    scheduler: String,
    /// The kernel's read-ahead
    #[arg(long, value_name = "SIZE", default_value = "256K")]
    read_ahead: Bytes,
}

impl UpArguments {
    /// These arguments with another kind of disk.
    #[must_use]
    pub fn of_kind(self, profile: ProfileName) -> Self {
        Self { profile, ..self }
    }

    /// The disk that is asked for.
    ///
    /// # Errors
    /// No such user.
    pub fn wanted(&self) -> anyhow::Result<Wanted> {
        Ok(Wanted {
            profile: self.profile,
            size: self.size,
            mount: self.mount.clone(),
            owner: owner(self.owner.as_deref())?,
            scheduler: self.scheduler.clone(),
            read_ahead_kb: self.read_ahead.get() / 1024,
        })
    }
}

fn owner(name: Option<&str>) -> anyhow::Result<Owner> {
    match name {
        Some(name) => users::find(name),
        None => match std::env::var("SUDO_USER") {
            Ok(name) if name != "root" => users::find(&name),
            _ => users::find("nobody"),
        },
    }
}

impl DiskCommand {
    /// Does what is asked.
    ///
    /// # Errors
    /// One line for people.
    pub fn run(self) -> anyhow::Result<()> {
        let places = Places::default();
        match self {
            Self::Up(arguments) => {
                stop::on_signals()?;
                let state = up::up(&places, &arguments.wanted()?)?;
                println!("{}", state.mount.display());
                Ok(())
            }
            Self::Down { force } => {
                up::need_root()?;
                // Half a clean-up would be worse than a late one.
                stop::on_signals()?;
                let busy = if force { Busy::Detach } else { Busy::Refuse };
                if !down::down(&places, busy)? {
                    println!("no disk is up");
                }
                Ok(())
            }
            Self::Drop => {
                let state = drop_caches::running(&places)?;
                stop::on_signals()?;
                drop_caches::drop_caches(&places, &state)
            }
            Self::Stats { json } => {
                let stats = stats::Stats::read(&places, drop_caches::running(&places)?)?;
                let text = match json {
                    true => serde_json::to_string_pretty(&stats).context("cannot print")?,
                    false => stats.table(),
                };
                println!("{}", text.trim_end());
                Ok(())
            }
            Self::Serve { profile, size } => server::serve(&places, profile, size.get()),
        }
    }
}
