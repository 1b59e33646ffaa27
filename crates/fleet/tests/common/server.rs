//! A redis-server that ends with the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection};
use tempfile::TempDir;

/// Whether there is a redis-server, and what ends it with this process.
pub fn is_there() -> bool {
    let works =
        |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).status();
    ["redis-server", "setpriv"]
        .iter()
        .all(|program| works(program).is_ok_and(|status| status.success()))
}

/// A server in a folder of its own.
pub struct Server {
    child: Child,
    folder: TempDir,
    arguments: Vec<String>,
}

impl Server {
    /// Starts one that listens on a socket in its folder, with more arguments.
    pub fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        let child = spawn(folder.path(), &arguments);
        let server = Self { child, folder, arguments };
        server.wait();
        server
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A connection past the limits of users.
    pub fn connect(&self) -> Connection {
        self.try_connect().unwrap()
    }

    fn try_connect(&self) -> redis::RedisResult<Connection> {
        Client::open(format!("unix://{}", self.socket().display()))?.get_connection()
    }

    /// Waits until it answers.
    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let answers = || {
            let mut connection = self.try_connect().ok()?;
            let answer: redis::RedisResult<String> = redis::cmd("PING").query(&mut connection);
            // Some servers here want a password.
            match answer {
                Ok(_) => Some(()),
                Err(error) => (error.code() == Some("NOAUTH")).then_some(()),
            }
        };
        while answers().is_none() {
            assert!(Instant::now() < deadline, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, with what it has on disk.
    pub fn restart(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        self.child = spawn(self.folder.path(), &self.arguments);
        self.wait();
    }

    /// What it has on disk is gone.
    pub fn lose_disk(&self) {
        let _ = std::fs::remove_file(self.folder.path().join("dump.rdb"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "redis-server", "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(folder).arg("--unixsocket").arg(folder.join("socket"));
    if !arguments.iter().any(|one| one == "--port" || one == "--tls-port") {
        command.args(["--port", "0"]);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}
