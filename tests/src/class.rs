//! A class of a test's own.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::{process, product};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A class that is removed when dropped.
#[derive(Debug)]
pub struct Class {
    name: String,
    disk: String,
    estimator: &'static str,
}

impl Class {
    /// A name for a class limited to `disk`; the first command makes it.
    #[must_use]
    pub fn new(disk: &str) -> Self {
        Self::estimated(disk, "account")
    }

    /// Creates a class with these disk limits and charges by this estimator.
    #[must_use]
    pub fn estimated(disk: &str, estimator: &'static str) -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{count}", std::process::id());
        Self { name, disk: disk.to_owned(), estimator }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `discnice run` in this class; the command's words are to be added.
    #[must_use]
    pub fn run(&self) -> Command {
        let mut command = product::discnice(["run", "--class", &self.name, "--disk", &self.disk]);
        command.args(["--estimator", self.estimator, "--"]);
        command
    }

    /// Returns a command like [`Self::run`], held by one mechanism.
    #[must_use]
    pub fn run_by(&self, mechanism: &str) -> Command {
        let class = ["--class", &self.name, "--disk", &self.disk];
        let mut command = product::discnice(["run", "--mechanism", mechanism]);
        command.args(class).arg("--");
        command
    }

    /// A command of this class.
    #[must_use]
    pub fn command<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.run();
        command.args(words);
        command
    }

    /// What `discnice class show --json` says of it.
    ///
    /// # Panics
    /// It is not there, or what is said is no JSON.
    #[must_use]
    pub fn show(&self) -> Value {
        let mut show = product::discnice(["class", "show", &self.name, "--json"]);
        let shown = process::run(&mut show).succeeded();
        let all: Value = serde_json::from_slice(&shown.output).expect("JSON");
        all[0].clone()
    }

    /// Bytes charged so far, read and written.
    ///
    /// # Panics
    /// As [`Class::show`].
    #[must_use]
    pub fn charged(&self) -> (u64, u64) {
        let shown = self.show();
        let field = |name: &str| shown[name].as_u64().expect("a number of bytes");
        (field("read"), field("written"))
    }
}

impl Drop for Class {
    fn drop(&mut self) {
        let mut remove = product::discnice(["class", "rm", "--force", &self.name]);
        // One that no command made, or that a test has destroyed, is not there.
        let _ = process::run(&mut remove);
    }
}
