//! Programs of this workspace that experiments run: examples, built beside this program.

use std::path::PathBuf;

use anyhow::Context;

/// An example of a package.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    package: &'static str,
    name: &'static str,
}

/// Sorts with admission of memory.
pub const SORT: Example = Example { package: "discnice-graybox", name: "mac_sort" };
/// Simulates regulation by progress.
pub const SIMULATION: Example = Example { package: "discnice-progress", name: "figures" };

impl Example {
    /// Its file.
    ///
    /// # Errors
    /// It was not built; the message says how to.
    pub fn file(self) -> anyhow::Result<PathBuf> {
        let own = std::env::current_exe().context("cannot find this program's file")?;
        let file = own.with_file_name("examples").join(self.name);
        let Self { package, name } = self;
        let build = format!("cargo build --release -p {package} --example {name}");
        file.is_file().then_some(file).with_context(|| format!("{name} is not built; run: {build}"))
    }
}
