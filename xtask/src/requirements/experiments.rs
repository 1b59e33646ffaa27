//! Reads of `eval/paper/NAME.toml` what each experiment is called.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

/// A table or figure that `discnice-eval` measures.
#[derive(Debug, Deserialize)]
pub struct Experiment {
    /// Its name on the command line.
    #[serde(skip)]
    pub name: String,
    pub paper: String,
    pub section: String,
    pub item: String,
    pub title: String,
}

/// Reads all, by name.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Experiment>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut one: Experiment =
            toml::from_str(&text).with_context(|| path.display().to_string())?;
        one.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        found.push(one);
    }
    // Figure 2 comes before figure 10.
    found.sort_by_key(|one| (one.kind().to_owned(), one.number(), one.name.clone()));
    Ok(found)
}

impl Experiment {
    fn kind(&self) -> &str {
        self.item.split(' ').next().unwrap_or_default()
    }

    fn number(&self) -> u32 {
        self.item.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(u32::MAX)
    }
}
