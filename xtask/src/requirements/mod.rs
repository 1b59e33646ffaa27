//! The statements of the four papers, one entry each in `eval/requirements`: what became of each, which
//! code implements it, and which test fails without it.
//!
//! Code and tests cite an entry by a comment line of its own, `//= ms-manners/4.5-decay` (`#=` in Python and
//! shell), above the item that implements it or the test that shows it.

mod citations;
mod entries;
mod experiments;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use citations::{Citation, Cited, Kind};
use entries::{Paper, Requirement, Status};

use crate::files;

/// Where the page for readers of the papers lies.
const PAGE: &str = "docs/papers.md";

/// Checks entries and citations, then writes the page, or with `check` compares it with what it should be.
pub fn run(check: bool, list: bool) -> anyhow::Result<()> {
    let workspace = &files::workspace()?;
    let papers = entries::read(&workspace.join("eval/requirements"))?;
    let experiments = experiments::read(&workspace.join("eval/paper"))?;
    let citations = citations::read(workspace)?;
    let mut wrong = Vec::new();
    let cited = by_entry(&papers, &citations, &mut wrong);
    let known: BTreeSet<&str> = experiments.iter().map(|one| one.name.as_str()).collect();
    for requirement in papers.iter().flat_map(|paper| &paper.requirements) {
        wrong.extend(uncited(requirement, &cited));
        let unknown = requirement.experiments.iter().filter(|name| !known.contains(name.as_str()));
        wrong.extend(unknown.map(|name| format!("{}: no experiment {name}", requirement.id)));
    }
    if !wrong.is_empty() {
        bail!("requirements:\n  {}", wrong.join("\n  "));
    }
    settle(&workspace.join(PAGE), &page::text(&papers, &cited, &experiments), check)?;
    tell(&papers, list);
    Ok(())
}

/// Sorts citations by entry; what names no entry is wrong.
fn by_entry<'a>(
    papers: &'a [Paper],
    citations: &'a [Citation],
    wrong: &mut Vec<String>,
) -> Cited<'a> {
    let requirements = papers.iter().flat_map(|paper| &paper.requirements);
    let mut cited: Cited = requirements.map(|one| (one.id.as_str(), Vec::new())).collect();
    for citation in citations {
        match cited.get_mut(citation.entry.as_str()) {
            Some(found) => found.push(citation),
            None => wrong
                .push(format!("{}:{}: no entry {}", citation.path, citation.line, citation.entry)),
        }
    }
    cited
}

/// What an entry that claims to be implemented lacks.
fn uncited(requirement: &Requirement, cited: &Cited<'_>) -> Option<String> {
    let found = cited.get(requirement.id.as_str()).map_or(&[][..], Vec::as_slice);
    let has = |kind| found.iter().any(|one| one.kind == kind);
    match requirement.status {
        Status::Implemented | Status::Better => match (has(Kind::Code), has(Kind::Test)) {
            (true, true) => None,
            (false, true) => Some(format!("{}: cited by no code of the product", requirement.id)),
            (true, false) => Some(format!("{}: cited by no test", requirement.id)),
            (false, false) => Some(format!("{}: cited by nothing", requirement.id)),
        },
        Status::Refused if has(Kind::Code) => {
            Some(format!("{}: refused, but cited by code", requirement.id))
        }
        Status::Refused | Status::Open => None,
    }
}

fn settle(file: &Path, text: &str, check: bool) -> anyhow::Result<()> {
    let is_current = fs::read_to_string(file).is_ok_and(|now| now == text);
    if is_current {
        return Ok(());
    }
    if check {
        bail!("{PAGE} is not current: run `cargo xtask requirements`");
    }
    fs::write(file, text).with_context(|| file.display().to_string())
}

fn tell(papers: &[Paper], list: bool) {
    for paper in papers {
        println!("requirements: {:13} {}", paper.name, page::counts(paper));
    }
    let shown = papers.iter().flat_map(|paper| &paper.requirements).filter(|_| list);
    for one in shown.filter(|one| matches!(one.status, Status::Open | Status::Refused)) {
        println!("{:8} {}: {}", one.status.name(), one.id, one.note.as_deref().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(status: Status) -> Requirement {
        Requirement {
            id: "p/1-a".into(),
            section: "1".into(),
            text: "Something.".into(),
            status,
            note: None,
            experiments: Vec::new(),
        }
    }

    fn citation(entry: &str, kind: Kind) -> Citation {
        Citation { entry: entry.into(), kind, path: "a.rs".into(), line: 1, item: None }
    }

    /// What is wrong with one entry of this status, cited like this.
    fn wrong(status: Status, kinds: &[Kind]) -> Option<String> {
        let citations: Vec<_> = kinds.iter().map(|kind| citation("p/1-a", *kind)).collect();
        let cited = Cited::from([("p/1-a", citations.iter().collect())]);
        uncited(&requirement(status), &cited)
    }

    #[test]
    fn what_is_claimed_needs_code_and_test() {
        for status in [Status::Implemented, Status::Better] {
            assert_eq!(wrong(status, &[Kind::Code, Kind::Test]), None);
            assert!(wrong(status, &[Kind::Code]).unwrap().ends_with("by no test"));
            assert!(wrong(status, &[Kind::Test]).unwrap().ends_with("by no code of the product"));
            assert!(wrong(status, &[Kind::Measurement]).unwrap().ends_with("by nothing"));
        }
        assert_eq!(wrong(Status::Open, &[]), None);
        assert_eq!(wrong(Status::Refused, &[Kind::Test]), None);
        assert!(wrong(Status::Refused, &[Kind::Code]).is_some());
    }

    #[test]
    fn a_citation_names_an_entry() {
        let paper = Paper {
            name: "p".into(),
            title: String::new(),
            source: String::new(),
            sections: Vec::new(),
            requirements: vec![requirement(Status::Open)],
        };
        let citations = [citation("p/1-a", Kind::Code), citation("p/1-b", Kind::Code)];
        let mut wrong = Vec::new();
        let papers = [paper];
        let cited = by_entry(&papers, &citations, &mut wrong);
        assert_eq!(cited["p/1-a"].len(), 1);
        assert_eq!(wrong, ["a.rs:1: no entry p/1-b"]);
    }

    #[test]
    fn an_old_page_fails_the_check_and_is_renewed() {
        let file = std::env::temp_dir().join(format!("xtask-page-{}", std::process::id()));
        fs::write(&file, "old").unwrap();
        assert!(settle(&file, "new", true).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        settle(&file, "new", false).unwrap();
        settle(&file, "new", true).unwrap();
        fs::remove_file(&file).unwrap();
    }
}
