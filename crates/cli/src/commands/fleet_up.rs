//! `discnice fleet up`: a server for trying it out.

#![allow(unsafe_code, reason = "a server that ends with this process")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use discnice_fleet::{Address, Link, address};

use super::fleet_settings::{SettingsArgs, described};
use crate::ending;
use crate::output::say;
use crate::program;

/// A server answers within this.
const START: Duration = Duration::from_secs(10);
const APART: Duration = Duration::from_millis(20);
/// Servers that are looked for, in this order.
const SERVERS: [&str; 2] = ["valkey-server", "redis-server"];

/// Start a server on this machine, for trying it out; ^C ends it
///
/// It listens to this machine only, keeps its data in memory, and has two users with random passwords: one that sets
/// budgets, and one with the few permissions that a machine needs.
#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Name of the budget
    #[arg(long, value_name = "NAME", default_value = "backup")]
    class: String,
    /// Port of 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 6379)]
    port: u16,
}

impl Up {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let settings = self.settings.over(None)?;
        if let Err(why) = address::check_name(&self.class) {
            bail!("{why}");
        }
        let server = SERVERS.iter().find_map(|name| program::find(name.as_ref()));
        let server = server.context("neither valkey-server nor redis-server is installed")?;
        let ended = ending::asked_to_end()?;
        let folder = tempfile::Builder::new().prefix("discnice-fleet-").tempdir()?;
        let passwords = Passwords::new()?;
        passwords.write(&folder.path().join("users"), &self.class)?;
        let password = folder.path().join("password");
        write_private(&password, &passwords.node)?;
        let mut server = Running(self.start(&server, folder.path())?);
        let url = |user: &str, secret: &str| {
            Address::parse(&format!(
                "redis://{user}:{secret}@127.0.0.1:{}/{}",
                self.port, self.class
            ))
        };
        let mut link = server.await_link(&url("admin", &passwords.admin)?, &ended)?;
        link.set(&settings)?;
        say!("{} on 127.0.0.1:{}: {}", self.class, self.port, described(&settings))?;
        say!("In config.toml:")?;
        say!("")?;
        say!("[class.{}]", self.class)?;
        say!(
            "fleet = \"redis://node@127.0.0.1:{}/{}?password-file={}\"",
            self.port,
            self.class,
            password.display()
        )?;
        say!("")?;
        say!(
            "To change it: discnice fleet set redis://admin:{}@127.0.0.1:{}/{} --cap RATE",
            passwords.admin,
            self.port,
            self.class
        )?;
        server.run_until(&ended)?;
        Ok(ExitCode::SUCCESS)
    }

    fn start(&self, server: &Path, folder: &Path) -> anyhow::Result<Child> {
        let mut command = Command::new(server);
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--loglevel", "warning"]);
        command.arg("--dir").arg(folder).arg("--aclfile").arg(folder.join("users"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: between fork and exec only this system call is made.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        command.spawn().with_context(|| format!("cannot start {}", server.display()))
    }
}

/// Of both users.
struct Passwords {
    admin: String,
    node: String,
}

impl Passwords {
    fn new() -> anyhow::Result<Self> {
        let mut random = File::open("/dev/urandom").context("no random numbers")?;
        let mut one = || -> anyhow::Result<String> {
            let mut bytes = [0; 16];
            random.read_exact(&mut bytes)?;
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        };
        Ok(Self { admin: one()?, node: one()? })
    }

    /// The server's access list.
    fn write(&self, path: &Path, class: &str) -> anyhow::Result<()> {
        let (admin, node) = (&self.admin, &self.node);
        let permissions = discnice_fleet::script::permissions(class);
        let users = format!(
            "user default off\nuser admin on >{admin} ~* &* +@all\nuser node on >{node} {permissions}\n"
        );
        write_private(path, &users)
    }
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// A server that ends with this value.
struct Running(Child);

impl Running {
    fn await_link(&mut self, address: &Address, ended: &AtomicBool) -> anyhow::Result<Link> {
        let deadline = Instant::now() + START;
        loop {
            if let Some(status) = self.0.try_wait()? {
                bail!(
                    "the server did not start ({status}); another program may have that port: {address}"
                );
            }
            match Link::open(address) {
                Ok(link) => return Ok(link),
                Err(fault) if Instant::now() > deadline || ended.load(Ordering::Relaxed) => {
                    bail!("{address}: {fault}");
                }
                Err(_) => thread::sleep(APART),
            }
        }
    }

    fn run_until(&mut self, ended: &AtomicBool) -> anyhow::Result<()> {
        while !ended.load(Ordering::Relaxed) {
            if let Some(status) = self.0.try_wait()? {
                bail!("the server ended: {status}");
            }
            thread::sleep(APART);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
