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
//! open = "why there is no upper bound"   # where there is one bound only
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
    /// Why the other side has no bound, where there is one bound only.
    pub open: Option<String>,
}

impl Paper {
    /// Reads the text of such a file.
    ///
    /// # Errors
    /// Not of that form, or a value has one bound without saying why; says where.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let paper: Self = toml::from_str(text).context("not a paper file")?;
        for value in &paper.value {
            if value.tolerance.is_some() && value.paper.is_none() {
                bail!("value {} has a tolerance but no number", value.key);
            }
            let bounds =
                usize::from(value.at_least.is_some()) + usize::from(value.at_most.is_some());
            if (bounds == 1) != value.open.is_some() {
                bail!("value {}: give it both bounds, or say in `open` why it has one", value.key);
            }
        }
        Ok(paper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bound_alone_needs_a_reason() {
        let paper = |bounds: &str| {
            let head =
                "paper = \"p\"\nsection = \"1\"\nitem = \"i\"\ntitle = \"t\"\nphenomenon = \"p\"\n";
            let value = "[[value]]\nkey = \"k\"\nlabel = \"l\"\nunit = \"s\"\n";
            Paper::parse(&format!("{head}{value}{bounds}"))
        };
        for good in
            ["", "at_least = 1\nat_most = 2", "at_least = 1\nopen = \"the more the better\""]
        {
            assert!(paper(good).is_ok(), "{good}");
        }
        for bad in [
            "at_least = 1",
            "at_most = 1",
            "open = \"x\"",
            "at_least = 1\nat_most = 2\nopen = \"x\"",
        ] {
            assert!(paper(bad).unwrap_err().to_string().contains("both bounds"), "{bad}");
        }
    }
}
