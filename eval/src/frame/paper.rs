//! What a paper claims: one small TOML file in `eval/paper/` for each table and figure.
//!
//! ```toml
//! paper = "discnice"            # which of the four
//! section = "2.1"
//! item = "Table 1"
//! title = "sequential beside rsync"
//! phenomenon = "one sentence: what the reader is to believe"
//!
//! [[value]]
//! key = "slowdown"              # under this name the study reports it
//! label = "slowdown beside rsync"
//! unit = "times"
//! paper = 4.18                  # left out where a plot gives no number
//! tolerance = 0.5               # relative; for values that another machine should reproduce
//! at_least = 2.0                # bounds: the phenomenon holds if all of them hold
//! ```

use anyhow::{Context, bail};
use serde::Deserialize;

/// One table or figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Which paper: the name of its text.
    pub paper: String,
    /// Section number.
    pub section: String,
    /// `Table 1`, `Figure 2`.
    pub item: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What the reader is to believe, in one sentence.
    pub phenomenon: String,
    /// The numbers.
    #[serde(default)]
    pub value: Vec<PaperValue>,
}

/// One number of a table or figure, or a bound that follows from its text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperValue {
    /// The study's name for it.
    pub key: String,
    /// What it is, for people.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// The paper's number.
    pub paper: Option<f64>,
    /// Relative difference up to which the measured median agrees with the paper's number.
    pub tolerance: Option<f64>,
    /// The phenomenon needs at least this.
    pub at_least: Option<f64>,
    /// The phenomenon needs at most this.
    pub at_most: Option<f64>,
}

impl Paper {
    /// Reads the text of such a file.
    ///
    /// # Errors
    /// Not of that form; says where.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let paper: Self = toml::from_str(text).context("not a paper file")?;
        for value in &paper.value {
            if value.tolerance.is_some() && value.paper.is_none() {
                bail!("value {} has a tolerance but no number", value.key);
            }
        }
        Ok(paper)
    }
}
