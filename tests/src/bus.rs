//! A message bus with services that a script plays: UPower, NetworkManager, logind, and a desktop that shows notifications.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Group, until};
use crate::product;

const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=BUS</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>"#;

/// A bus with the services that the script plays.
#[derive(Debug)]
pub struct Bus {
    _daemon: Group,
    _services: Group,
    folder: TempDir,
}

impl Bus {
    /// Returns true if there are a bus and Python to play the services.
    #[must_use]
    pub fn can_be() -> bool {
        let has = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        ["dbus-daemon", "python3"].iter().all(has)
    }

    /// Starts it; there are mains power, a network without a price, and a user at the machine.
    ///
    /// # Panics
    /// It does not come up.
    #[must_use]
    pub fn start() -> Self {
        let folder = product::folder();
        let (socket, config) = (folder.path().join("bus"), folder.path().join("config"));
        fs::write(&config, BUS.replace("BUS", socket.to_str().expect("a name"))).expect("a file");
        let mut daemon = product::as_user("dbus-daemon");
        daemon.arg("--nofork").arg("--config-file").arg(&config);
        let daemon = Group::start(&mut daemon);
        until("the bus is there", || socket.exists());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_services.py");
        let script = fs::read_to_string(script).expect("the script");
        let mut services = product::as_user("python3");
        services.args(["-c", &script]).arg(&socket).arg(folder.path());
        let bus = Self { _daemon: daemon, _services: Group::start(&mut services), folder };
        for (name, value) in [
            ("OnBattery", "b 0"),
            ("Metered", "u 2"),
            ("IdleHint", "b 0"),
            ("IdleSinceHint", "t 0"),
        ] {
            bus.say(name, value);
        }
        until("the services are there", || bus.folder.path().join("ready").exists());
        bus
    }

    /// A property has this type and value from now on, or a question that answer.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn say(&self, name: &str, value: &str) {
        let (place, draft) = (self.folder.path().join(name), self.folder.path().join("draft"));
        fs::write(&draft, value).and_then(|()| fs::rename(&draft, &place)).expect("a file");
    }

    /// The socket of the bus.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("bus")
    }

    /// The address of the bus.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix:path={}", self.socket().display())
    }

    /// The questions that were asked, with what can be answered.
    #[must_use]
    pub fn asked(&self) -> String {
        fs::read_to_string(self.folder.path().join("asked")).unwrap_or_default()
    }
}
