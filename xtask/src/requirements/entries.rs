//! Reads `eval/requirements/PAPER.toml`: the statements of a paper in our own words.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// One paper. The order of sections and entries is the paper's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name of its file, with which all identifiers begin.
    #[serde(skip)]
    pub name: String,
    /// The paper's title.
    pub title: String,
    /// Authors, place, year.
    pub source: String,
    #[serde(rename = "section")]
    pub sections: Vec<Section>,
    #[serde(rename = "requirement")]
    pub requirements: Vec<Requirement>,
}

/// A section with statements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    pub number: String,
    pub title: String,
}

/// A statement: a mechanism, parameter, default, interface, limitation or proposal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// `PAPER/SECTION-WORDS`.
    pub id: String,
    pub section: String,
    /// What the paper says, in our own words.
    pub text: String,
    pub status: Status,
    /// How ours is better, why it is refused, or what is missing.
    pub note: Option<String>,
    /// Tables and figures that measure it, as in `eval/paper`.
    #[serde(default)]
    pub experiments: Vec<String>,
}

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A user has it as the paper says.
    Implemented,
    /// A user has what it is for, by other means; the note says which.
    Better,
    /// Users do not get it; the note says why.
    Refused,
    /// Users do not have it yet; the note says what is missing.
    Open,
}

impl Status {
    /// All, as counts list them.
    pub const ALL: [Self; 4] = [Self::Implemented, Self::Better, Self::Refused, Self::Open];

    /// Its name in files and on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Implemented => "implemented",
            Self::Better => "better",
            Self::Refused => "refused",
            Self::Open => "open",
        }
    }
}

/// Reads all papers, by name.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Paper>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    files.iter().map(|file| parse_file(file).with_context(|| file.display().to_string())).collect()
}

fn parse_file(file: &Path) -> anyhow::Result<Paper> {
    let name = file.file_stem().and_then(|stem| stem.to_str()).context("no name of a paper")?;
    parse(name, &fs::read_to_string(file)?)
}

fn parse(name: &str, text: &str) -> anyhow::Result<Paper> {
    let mut paper: Paper = toml::from_str(text)?;
    name.clone_into(&mut paper.name);
    let sections: BTreeSet<&str> = paper.sections.iter().map(|one| one.number.as_str()).collect();
    let mut seen = BTreeSet::new();
    for one in &paper.requirements {
        ensure!(sections.contains(one.section.as_str()), "{}: no section {}", one.id, one.section);
        let start = format!("{name}/{}-", one.section);
        ensure!(one.id.starts_with(&start), "{}: must begin with {start}", one.id);
        ensure!(seen.insert(&one.id), "{}: twice", one.id);
        if one.status != Status::Implemented && one.note.is_none() {
            bail!("{}: {} needs a note", one.id, one.status.name());
        }
    }
    Ok(paper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(requirements: &str) -> Result<usize, String> {
        let head = "title = 't'\nsource = 's'\n[[section]]\nnumber = '4'\ntitle = 'Four'\n";
        parse("p", &format!("{head}{requirements}"))
            .map(|paper| paper.requirements.len())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn entries_belong_to_sections_and_give_reasons() {
        let entry = |id: &str, status: &str| {
            format!(
                "[[requirement]]\nid = '{id}'\nsection = '4'\ntext = 'x'\nstatus = '{status}'\n"
            )
        };
        assert_eq!(parsed(&entry("p/4-a", "implemented")), Ok(1));
        assert!(parsed(&entry("p/4-a", "refused")).unwrap_err().contains("needs a note"));
        assert!(parsed(&entry("q/4-a", "implemented")).unwrap_err().contains("must begin"));
        let twice = entry("p/4-a", "implemented").repeat(2);
        assert!(parsed(&twice).unwrap_err().contains("twice"));
        assert!(parsed(&entry("p/4-a", "done")).is_err());
    }
}
