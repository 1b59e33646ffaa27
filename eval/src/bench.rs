//! Measurements of the product itself: finds them, runs one, and keeps what it printed with machine, commit and date.
//!
//! A measurement is a program in `eval/benches`, or an example or benchmark of a crate; its first line of text says what it
//! measures. So there is no list that could be out of date.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::Subcommand;

use crate::frame::facts::Facts;
use crate::tool;

/// Folders of programs, from the root of the workspace.
const PROGRAMS: [&str; 2] = ["eval/benches", "eval/benches/graybox"];

/// Measure the product itself, not what the papers measured
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// List all measurements, each with what it measures
    List,
    /// Run a measurement and keep what it prints in eval/results/benches
    Run {
        /// Name, as `list` prints it
        name: String,
        /// Its own options; `--help` shows them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

/// A measurement.
#[derive(Debug)]
struct Bench {
    /// Path below `eval/benches` without its ending, or crate and name.
    name: String,
    /// What it measures, in a line.
    purpose: String,
    /// The command that runs it.
    words: Vec<String>,
}

impl BenchCommand {
    /// Does what is asked.
    ///
    /// # Errors
    /// One line for people: no such measurement, or it failed.
    pub fn run(self) -> anyhow::Result<()> {
        let root = workspace()?;
        let all = find(&root)?;
        match self {
            Self::List => {
                let width = all.iter().map(|bench| bench.name.len()).max().unwrap_or(0);
                for Bench { name, purpose, .. } in &all {
                    println!("{name:<width$}  {purpose}");
                }
                Ok(())
            }
            Self::Run { name, options } => {
                let Some(bench) = all.iter().find(|bench| bench.name == name) else {
                    bail!("no measurement \"{name}\"; `discnice-eval bench list` has them all");
                };
                run(&root, bench, &options)
            }
        }
    }
}

/// The root of the workspace: the nearest folder above the current one that has the measurements.
fn workspace() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let root = here.ancestors().find(|folder| folder.join(PROGRAMS[0]).is_dir());
    root.map(Path::to_owned)
        .context("no eval/benches here or above; run it in a clone of the repository")
}

/// Finds all measurements, by name.
fn find(root: &Path) -> anyhow::Result<Vec<Bench>> {
    let mut all = Vec::new();
    for folder in PROGRAMS {
        for path in entries(&root.join(folder))? {
            all.extend(program(root, &path));
        }
    }
    for package in entries(&root.join("crates"))? {
        for (folder, kind) in [("examples", "example"), ("benches", "bench")] {
            for path in entries(&package.join(folder)).unwrap_or_default() {
                all.extend(of_crate(&package, kind, &path));
            }
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// A program, which names its interpreter in its first line; other files are parts of those.
fn program(root: &Path, path: &Path) -> Option<Bench> {
    let interpreter = match path.extension()?.to_str()? {
        "py" => "python3",
        "sh" => "bash",
        _ => return None,
    };
    let text = fs::read_to_string(path).ok()?;
    let (first, rest) = text.split_once('\n')?;
    let below = path.strip_prefix(root.join(PROGRAMS[0])).ok()?;
    let words = [interpreter, path.to_str()?].map(str::to_owned).to_vec();
    let name = below.with_extension("").to_str()?.to_owned();
    first.starts_with("#!").then(|| Bench { name, purpose: sentence(rest.lines()), words })
}

/// An example or a benchmark of a crate.
fn of_crate(package: &Path, kind: &str, path: &Path) -> Option<Bench> {
    let main = if path.is_dir() { path.join("main.rs") } else { path.to_owned() };
    let text = fs::read_to_string(main).ok()?;
    let (package, target) = (package.file_name()?.to_str()?, path.file_stem()?.to_str()?);
    let mut words: Vec<String> = match kind {
        "bench" => ["cargo", "bench", "--bench"].map(str::to_owned).to_vec(),
        _ => ["cargo", "run", "--release", "--example"].map(str::to_owned).to_vec(),
    };
    words.extend([target, "--package", &format!("discnice-{package}"), "--"].map(str::to_owned));
    Some(Bench { name: format!("{package}:{target}"), purpose: sentence(text.lines()), words })
}

/// The first sentence of the text that begins with these lines.
fn sentence<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let trimmed = lines.map(|line| line.trim_matches(['"', '#', '/', '!', ' ']));
    let text = trimmed.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = ["? ", ". "].iter().filter_map(|mark| text.find(mark)).min();
    let sentence = text.get(..end.map_or(text.len(), |end| end + 1)).unwrap_or(&text);
    sentence.trim_end_matches(['.', ':']).to_owned()
}

/// Runs a measurement; prints and keeps what it writes to standard output.
fn run(root: &Path, bench: &Bench, options: &[String]) -> anyhow::Result<()> {
    let date = tool::run("date", ["+%Y-%m-%dT%H:%M:%S"])?;
    let folder = root.join("eval/results/benches");
    let file = folder.join(format!("{}-{date}.txt", bench.name.replace(['/', ':'], "-")));
    let mut record = fs::create_dir_all(&folder)
        .and_then(|()| File::create(&file))
        .with_context(|| format!("cannot keep results in {}", file.display()))?;
    let facts = Facts::gather(&[]);
    writeln!(
        record,
        "{}\ndate: {date}\n{}",
        command_line(bench, options),
        facts.lines().join("\n")
    )?;
    let (program, words) = bench.words.split_first().context("no command")?;
    let mut child = Command::new(program)
        .args(words)
        .args(options)
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let output = child.stdout.take().context("no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        writeln!(record, "{line}")?;
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} failed ({status}); what it printed is in {}", bench.name, file.display());
    }
    eprintln!("{}recorded in {}", crate::message::PREFIX, file.display());
    Ok(())
}

fn command_line(bench: &Bench, options: &[String]) -> String {
    format!("command: {} {}", bench.words.join(" "), options.join(" ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measurement_is_found_and_says_what_it_measures() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let all = find(root).unwrap();
        let named = |name: &str| all.iter().find(|bench| bench.name == name);
        for name in
            ["rates", "escapes", "suites", "graybox/powercut", "ledger:ledger", "progress:figures"]
        {
            assert!(named(name).is_some(), "{name} is missing");
        }
        assert!(named("kept").is_none(), "a part of others is no measurement");
        for bench in &all {
            let begins = bench.purpose.starts_with(char::is_alphabetic);
            assert!(begins && bench.purpose.len() > 15, "{bench:?}");
        }
        let mut names: Vec<&str> = all.iter().map(|bench| &*bench.name).collect();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn what_a_measurement_prints_is_kept_with_machine_and_commit() {
        let root = tempfile::tempdir().unwrap();
        let words = ["printf", "12 of 5\\n%s\\n"].map(str::to_owned).to_vec();
        let bench = Bench { name: "graybox/some".into(), purpose: String::new(), words };
        run(root.path(), &bench, &["--long".into()]).unwrap();
        let kept = entries(&root.path().join("eval/results/benches")).unwrap();
        let text = fs::read_to_string(&kept[0]).unwrap();
        assert!(text.starts_with("command: printf 12 of 5\\n%s\\n --long\ndate: 20"), "{text}");
        assert!(text.contains("\nCommit: ") && text.contains("\nSystem: "), "{text}");
        assert!(text.ends_with("\n12 of 5\n--long\n"), "{text}");
        assert!(run(root.path(), &Bench { words: vec!["false".into()], ..bench }, &[]).is_err());
    }
}
