//! A fleet on one machine: a real server with a budget that three classes share as if each were a machine of its own.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Outcome, only_child, run, send};
use crate::product;

/// Bytes a second that all machines have together.
pub const CAP: u64 = 6 << 20;
/// Bytes a second of a machine that cannot reach the server.
pub const FLOOR: u64 = 200 << 10;
/// Seconds for which a machine has its part without asking again.
pub const LEASE: u64 = 2;

/// What is killed and waited for when dropped.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, a policyd, and folders of their own.
#[derive(Debug)]
pub struct Scene {
    /// What its programs write.
    pub folder: tempfile::TempDir,
    port: u16,
    /// The server, while it runs.
    pub server: Option<Killed>,
    /// The daemon of all classes, while it runs.
    pub policyd: Option<Killed>,
    /// Three classes, each of which is a machine of the fleet.
    pub classes: Vec<String>,
}

impl Scene {
    /// Starts all of it, with classes of this name; `None` where there is no server to start.
    ///
    /// # Panics
    /// Something does not start.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let version = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        version.ok().filter(std::process::ExitStatus::success)?;
        let folder = product::folder();
        for part in ["run", "config"] {
            let mut made = product::as_user("mkdir");
            assert!(
                made.args(["-m", "700"]).arg(folder.path().join(part)).status().unwrap().success()
            );
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let classes = (1..=3).map(|one| format!("{name}-{}-{one}", std::process::id())).collect();
        let mut scene = Self { folder, port, server: None, policyd: None, classes };
        scene.configure();
        scene.start_server();
        scene.start_policyd();
        Some(scene)
    }

    /// The address of the budget.
    #[must_use]
    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/backup", self.port)
    }

    fn configure(&self) {
        let mut text = String::new();
        for class in &self.classes {
            writeln!(text, "[class.{class}]\nfleet = \"{}\"", self.address()).unwrap();
        }
        let place = self.folder.path().join("config/discnice");
        fs::create_dir_all(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.join("config.toml"), text).unwrap();
    }

    /// `discnice` with these words, in its folders.
    pub fn command<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Command {
        let mut command = product::discnice(words);
        command.env("XDG_RUNTIME_DIR", self.folder.path().join("run"));
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    /// Starts a server that knows nothing, and sets the budget.
    ///
    /// # Panics
    /// It does not come up.
    pub fn start_server(&mut self) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "redis-server", "--save", "", "--port"]);
        command.arg(self.port.to_string()).arg("--dir").arg(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(Killed(command.spawn().unwrap()));
        let (cap, floor, lease) = (CAP.to_string(), FLOOR.to_string(), format!("{LEASE}s"));
        let set = [
            "fleet",
            "set",
            &self.address(),
            "--cap",
            &cap,
            "--floor",
            &floor,
            "--nodes",
            "3",
            "--lease",
        ];
        self.until("the server answers", || {
            let mut set = self.command(set);
            run(set.arg(&lease)).status == Some(0)
        });
    }

    /// Starts a daemon.
    ///
    /// # Panics
    /// It does not come up.
    pub fn start_policyd(&mut self) {
        let mut command = self.command(["policyd", "--idle", "60"]);
        self.policyd = Some(Killed(command.stdin(Stdio::null()).spawn().unwrap()));
        // Else the first command starts another one.
        self.until_listening(&self.folder.path().join("run/discnice"));
    }

    /// Starts a daemon of another session, with a configuration that gives no class a server.
    ///
    /// # Panics
    /// It does not come up.
    #[must_use]
    pub fn stranger(&self) -> Killed {
        let place = self.folder.path().join("stranger");
        assert!(
            product::as_user("mkdir").args(["-m", "700"]).arg(&place).status().unwrap().success()
        );
        let mut command = self.command(["policyd", "--idle", "60"]);
        command.env("XDG_RUNTIME_DIR", &place).env("XDG_CONFIG_HOME", &place);
        let stranger = Killed(command.stdin(Stdio::null()).spawn().unwrap());
        self.until_listening(&place.join("discnice"));
        stranger
    }

    fn until_listening(&self, place: &Path) {
        let is_socket = |name: &OsStr| name.to_string_lossy().ends_with(".sock");
        self.until("policyd listens", || {
            let mut names = fs::read_dir(place).into_iter().flatten().flatten();
            names.any(|entry| is_socket(&entry.file_name()))
        });
    }

    /// The process that watches: the daemon's only child.
    #[must_use]
    pub fn worker(&self) -> Option<i32> {
        only_child(self.policyd.as_ref()?.0.id()).map(u32::cast_signed)
    }

    /// Starts a program that writes without end in one of the classes.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn writer(&self, class: &str) -> Killed {
        let file = format!("of={}", self.folder.path().join(class).display());
        let words = [
            "run",
            "--class",
            class,
            "--",
            "dd",
            "if=/dev/zero",
            "bs=64k",
            "oflag=direct",
            "count=16000",
        ];
        let mut command = self.command(words);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    }

    /// What `discnice class show --json` says of a class; null if it is not there.
    #[must_use]
    pub fn show(&self, class: &str) -> Value {
        let shown = run(&mut self.command(["class", "show", class, "--json"]));
        serde_json::from_slice::<Value>(&shown.output).map_or(Value::Null, |all| all[0].clone())
    }

    /// Bytes a second that a class has of the budget.
    #[must_use]
    pub fn allowed(&self, class: &str) -> u64 {
        self.show(class)["fleet"]["allowed"].as_u64().unwrap_or(0)
    }

    fn written(&self) -> Vec<u64> {
        self.classes.iter().map(|class| self.show(class)["written"].as_u64().unwrap_or(0)).collect()
    }

    /// Bytes a second of each class in the next seconds.
    #[must_use]
    pub fn rates(&self, seconds: u64) -> Vec<f64> {
        let (begun, before) = (Instant::now(), self.written());
        std::thread::sleep(Duration::from_secs(seconds));
        let after = self.written();
        let time = begun.elapsed().as_secs_f64();
        before.iter().zip(after).map(|(before, after)| (after - before) as f64 / time).collect()
    }

    /// Waits until something is so.
    ///
    /// # Panics
    /// It never is.
    pub fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            let classes: Vec<Value> =
                self.classes.iter().map(|one| self.show(one)["fleet"].clone()).collect();
            assert!(Instant::now() < deadline, "{what}: never; {classes:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until each class has so much of the budget.
    ///
    /// # Panics
    /// One never has.
    pub fn until_each_has(&self, what: &str, least: u64, most: u64) {
        self.until(what, || {
            self.classes.iter().all(|class| (least..=most).contains(&self.allowed(class)))
        });
    }

    /// What `discnice fleet status` says with these arguments.
    #[must_use]
    pub fn status(&self, arguments: &[&str]) -> Outcome {
        let mut status = self.command(["fleet", "status"]);
        run(status.args(arguments))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for class in &self.classes {
            let _ = run(&mut self.command(["class", "rm", "--force", class]));
        }
        if let Some(worker) = self.worker() {
            send(worker, 18);
            send(worker, 15);
        }
    }
}
