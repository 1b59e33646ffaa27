//! What a reader must know of the machine to judge a record.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::proc::meminfo;
use crate::tool;

/// The machine and its programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the machine.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// Model of the first processor.
    pub cpu: String,
    /// Processors that this program may use.
    pub cpus: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Commit of the sources in the current directory, with `-dirty` if they were changed; several with commas between.
    #[serde(default)]
    pub commit: String,
    /// First line of `--version` of each program.
    pub programs: BTreeMap<String, String>,
}

impl Facts {
    /// Looks at this machine, and asks `programs` for their versions.
    #[must_use]
    pub fn gather(programs: &[&str]) -> Self {
        Self {
            host: line("/proc/sys/kernel/hostname", ""),
            kernel: line("/proc/sys/kernel/osrelease", ""),
            system: line("/etc/os-release", "PRETTY_NAME="),
            cpu: line("/proc/cpuinfo", "model name"),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            memory: meminfo("MemTotal").unwrap_or(0),
            commit: tool::run("git", ["describe", "--always", "--dirty", "--exclude=*"])
                .unwrap_or_else(|_| "unknown".into()),
            programs: programs.iter().map(|name| ((*name).to_owned(), version(name))).collect(),
        }
    }

    /// Notes that something was measured of these commits, too; commas separate them.
    pub fn add_commits(&mut self, commits: &str) {
        let all = self.commit.split(", ").chain(commits.split(", "));
        let mut named: Vec<&str> = Vec::new();
        for commit in all.filter(|commit| !commit.is_empty()) {
            if !named.contains(&commit) {
                named.push(commit);
            }
        }
        self.commit = named.join(", ");
    }

    /// Says where and of what something was measured, in lines for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let memory = discnice_units::Bytes::new(self.memory);
        let (host, cpus, cpu) = (&self.host, self.cpus, &self.cpu);
        let mut lines = vec![
            format!("Machine: {host}, {cpus} processors of type {cpu}, {memory} of memory."),
            format!("System: {}, Linux {}.", self.system, self.kernel),
        ];
        if !self.commit.is_empty() {
            lines.push(format!("Commit: {}.", self.commit));
        }
        lines
    }
}

/// The rest of the first line of `file` that begins with `begin`; empty if there is none.
fn line(file: &str, begin: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let rest = text.lines().find_map(|line| line.strip_prefix(begin)).unwrap_or_default();
    rest.trim_matches([' ', '\t', ':', '"']).to_owned()
}

fn version(program: &str) -> String {
    match tool::run(program, ["--version"]) {
        Ok(text) => text.lines().next().unwrap_or_default().to_owned(),
        Err(error) => format!("{error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine() {
        let facts = Facts::gather(&["tar", "no-such-program-at-all"]);
        assert!(facts.memory > 0 && facts.cpus > 0 && facts.kernel.contains('.'));
        assert!(facts.programs["tar"].contains("tar"));
        assert_eq!(
            facts.programs["no-such-program-at-all"],
            "no-such-program-at-all is not installed"
        );
    }
}
