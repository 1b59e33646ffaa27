//! `discnice run --report FILE`: what a job did over its time, for people (HTML, SVG) or for
//! machines (JSON).
//!
//! - [`course`]: samples of the class's meters while the job runs;
//! - [`waited`]: what it waited for;
//! - `verdict`: that in one sentence;
//! - [`record`]: what they say in the end, which is what JSON prints;
//! - [`plots`], [`page`]: the same for people.

mod course;
mod page;
mod plots;
mod record;
mod verdict;
mod waited;

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{anyhow, bail};
use discnice_escape::{Foreign, json};
use discnice_graybox::input::reason;
use discnice_paths::folder_of;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use crate::fresh;

pub use course::{Course, LOOKS};
pub use record::JobRecord;
pub use verdict::{WORTH_TELLING, verdict};
pub use waited::Waited;

/// How a report looks, by its file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Svg,
    Json,
}

/// More links than the kernel follows.
const LINKS: usize = 64;

/// The file that a report is to be written to.
#[derive(Debug, Clone)]
pub struct Target {
    path: PathBuf,
    format: Format,
}

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Format::Html,
            Some("svg") => Format::Svg,
            Some("json") => Format::Json,
            _ => return Err("give a file name that ends in .html, .svg or .json"),
        };
        Ok(Self { path, format })
    }
}

/// A report that is being made: its file can be written, but has the name of the target only when
/// it is whole.
#[derive(Debug)]
pub struct ReportDraft {
    target: Target,
    file: NamedTempFile,
}

impl Target {
    /// Makes sure, before anything is started, that the report can be written.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn draft(&self) -> anyhow::Result<ReportDraft> {
        let cannot = || format!("cannot write a report to {}", Foreign::path(&self.path));
        let refused =
            |why: &str| anyhow!("{}: {why}; name a file in a directory of yours", cannot());
        // Of a symbolic link the file is replaced, not the link. The kernel tells which links are not to be followed.
        let (found, path) = (self.path.metadata(), behind_links(&self.path));
        let folder = folder_of(&path);
        let about = folder.metadata().map_err(|error| refused(&reason(&error)))?;
        match found {
            Ok(file) if file.is_dir() => {
                bail!("{}: it is a directory; name a file in it", cannot())
            }
            Ok(file) if !is_replaceable(&file, &about) => {
                return Err(refused("what has that name cannot be replaced"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused(&reason(&error)));
            }
            Ok(_) | Err(_) => {}
        }
        // What the umask leaves of these is what any program's new file has.
        let file = fresh::file(folder, ".discnice-report-", 0o666)
            .map_err(|error| refused(&reason(&error)))?;
        Ok(ReportDraft { target: Self { path, ..self.clone() }, file })
    }
}

/// The file that a path leads to by symbolic links, also if it is not there yet. path_resolution(7)
fn behind_links(path: &Path) -> PathBuf {
    let next = |path: &PathBuf| Some(folder_of(path).join(fs::read_link(path).ok()?));
    iter::successors(Some(path.to_owned()), next).take(LINKS).last().unwrap_or_default()
}

/// Whether a file may be renamed over another one in a folder: a regular file, and in a folder such as /tmp one's own.
fn is_replaceable(file: &Metadata, folder: &Metadata) -> bool {
    let own = geteuid().as_raw();
    let is_sticky = folder.mode() & libc::S_ISVTX != 0;
    let may = !is_sticky || own == 0 || [file.uid(), folder.uid()].contains(&own);
    may && file.is_file()
}

impl ReportDraft {
    /// Writes the report.
    ///
    /// # Errors
    /// The disk is full, or the folder is gone, or what has the name now cannot be replaced: then the report has another name,
    /// which is told.
    pub fn finish(mut self, record: &JobRecord) -> anyhow::Result<()> {
        let text = match self.target.format {
            Format::Json => json(&serde_json::to_string_pretty(record)?).into_owned() + "\n",
            Format::Html => page::html(record),
            Format::Svg => page::svg(record),
        };
        let cannot = || format!("cannot write the report {}", Foreign::path(&self.target.path));
        let written = self.file.as_file_mut().write_all(text.as_bytes());
        written.map_err(|error| anyhow!("{}: {}", cannot(), reason(&error)))?;
        let Err(failed) = self.file.persist(&self.target.path) else { return Ok(()) };
        let why = reason(&failed.error);
        match failed.file.keep() {
            Ok((_, path)) if path.exists() => {
                bail!("{}: {why}; it is in {}", cannot(), Foreign::path(&path))
            }
            Ok(_) | Err(_) => bail!("{}: {why}", cannot()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_format() {
        let format = |name: &str| name.parse::<Target>().map(|target| target.format);
        assert_eq!(format("a/b.html"), Ok(Format::Html));
        assert_eq!(format("x.svg"), Ok(Format::Svg));
        assert_eq!(format("./x.y.json"), Ok(Format::Json));
        for name in ["", "x", ".json", "x.pdf", "x.JSON/", "html"] {
            assert!(format(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_a_link_leads_to_is_written_also_if_it_is_not_there_yet() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        symlink("sub/second", at("first.json")).unwrap();
        symlink("../x", at("sub/second")).unwrap();
        let target: Target = at("first.json").to_str().unwrap().parse().unwrap();
        for _ in 0..2 {
            let draft = target.draft().unwrap();
            draft.file.persist(draft.target.path).unwrap();
            let kept = [at("first.json"), at("sub/second")].map(|link| link.is_symlink());
            assert!(kept == [true; 2] && at("x").is_file(), "{kept:?}");
        }
        symlink("loop.json", at("loop.json")).unwrap();
        symlink("/no/such/folder", at("nowhere.json")).unwrap();
        for name in ["loop.json", "nowhere.json"] {
            let target: Target = at(name).to_str().unwrap().parse().unwrap();
            let told = target.draft().unwrap_err().to_string();
            assert!(told.contains(name) && at(name).is_symlink(), "{told}");
        }
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("x.json");
        let target: Target = name.to_str().unwrap().parse().unwrap();
        drop(target.draft().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere: Target = "/no/such/folder/x.json".parse().unwrap();
        assert!(nowhere.draft().is_err());
    }
}
