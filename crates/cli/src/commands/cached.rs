//! `discnice cached`: which parts of files are in the page cache (gray-box paper, section 4.1).

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use discnice_graybox::fccd::{Options, Residency, residency};
use discnice_graybox::input::{InputError, open, shown};
use discnice_units::Bytes;
use serde::Serialize;

use super::file_status::{complain, status};
use crate::output::{self, counted, say};

const EXAMPLES: &str = "\
Examples:
  discnice cached *.iso            how much of each is in the page cache
  discnice cached --json big.db    which parts are, as JSON";

/// Show which parts of files are in the page cache
///
/// The output names the method. `cachestat` and `mincore` are exact; where the kernel permits neither, `probe` reads single
/// bytes and times them. A hole of a sparse file has pages in the cache only once it was read: before, it counts as not
/// cached, although reading it takes no disk.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Cached {
    /// Print a JSON array of objects: path, size, cached_bytes, cached_fraction, means, regions,
    /// probing
    #[arg(long)]
    json: bool,
    /// Resolution of the exact methods [default: a page, or 1/16384 of a large file]
    #[arg(long, value_name = "SIZE")]
    grain: Option<Bytes>,
    /// How much one probe stands for; a smaller unit is more exact and reads more [default: 1000 pages]
    #[arg(long, value_name = "SIZE")]
    unit: Option<Bytes>,
    /// Probe even where an exact method is permitted
    #[arg(long)]
    probe: bool,
    /// Files to look at
    #[arg(value_name = "FILE", required = true)]
    files: Vec<OsString>,
}

/// One element of `--json`. Fields are only ever added.
#[derive(Serialize)]
struct Element<'a> {
    /// As given; bytes that are not UTF-8 are replaced, and then `path_bytes` has the true ones.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<&'a [u8]>,
    size: u64,
    /// Null if unknown.
    cached_bytes: Option<u64>,
    /// At most 1; null if unknown.
    cached_fraction: Option<f64>,
    /// `cachestat`, `mincore`, `probe` or `unknown`.
    means: &'static str,
    regions: Vec<ElementRegion>,
    probing: Probing,
}

#[derive(Serialize)]
struct ElementRegion {
    offset: u64,
    length: u64,
    cached_bytes: u64,
}

/// What looking did to the cache.
#[derive(Serialize)]
struct Probing {
    probes: u64,
    pages_read: u64,
    seconds: f64,
}

fn element<'a>(path: &'a Path, seen: &Residency) -> Element<'a> {
    let regions = seen.regions.iter().map(|region| ElementRegion {
        offset: region.offset,
        length: region.length,
        cached_bytes: region.cached_bytes,
    });
    Element {
        path: path.to_string_lossy().into_owned(),
        path_bytes: path.to_str().is_none().then(|| path.as_os_str().as_bytes()),
        size: seen.size,
        cached_bytes: seen.cached_bytes(),
        cached_fraction: seen.cached_frac(),
        means: seen.means.name(),
        regions: regions.collect(),
        probing: Probing {
            probes: seen.heisenberg.probes,
            pages_read: seen.heisenberg.pages_read,
            seconds: seen.heisenberg.time.as_secs_f64(),
        },
    }
}

/// Cells of the map; each shows its part of the file.
const MAP_CELLS: u64 = 32;

/// A picture of the file: a full block is all cached, a dot is nothing.
fn map(seen: &Residency) -> String {
    const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
    if seen.cached_bytes().is_none() {
        return "?".repeat(MAP_CELLS as usize);
    }
    let edge =
        |cell: u64| (u128::from(seen.size) * u128::from(cell) / u128::from(MAP_CELLS)) as u64;
    let shade = |cell: u64| {
        let (start, length) = (edge(cell), (edge(cell + 1) - edge(cell)).max(1));
        let frac = seen.cached_within(start, length) as f64 / length as f64;
        // Only the extremes are called all or nothing.
        match frac {
            0.0 => SHADES[0],
            full if full >= 1.0 => SHADES[4],
            part => SHADES[1 + ((part * 3.0) as usize).min(2)],
        }
    };
    (0..MAP_CELLS).map(shade).collect()
}

/// A part in percent; only the extremes are called all or nothing.
fn percent(frac: f64) -> String {
    let percent = frac * 100.0;
    let shown = if frac > 0.0 && frac < 1.0 { percent.clamp(0.1, 99.9) } else { percent };
    format!("{shown:.1}")
}

fn row(path: &Path, seen: &Residency, with_map: bool) -> String {
    let frac = seen.cached_frac().map_or("?".into(), percent);
    let cached = seen.cached_bytes().map_or("?".into(), |bytes| Bytes::new(bytes).to_string());
    let size = Bytes::new(seen.size).to_string();
    let means = seen.means.name();
    let map = if with_map { format!("  {}", map(seen)) } else { String::new() };
    let pages = seen.heisenberg.pages_read;
    let note = if pages > 0 {
        format!("  ({} read by probing)", counted(pages, "page", "pages"))
    } else {
        String::new()
    };
    format!("{frac:>7} {cached:>10} {size:>10}  {means:<9}{map}  {}{note}", shown(path))
}

impl Cached {
    /// Looks at each file; 1 if some failed.
    ///
    /// # Errors
    /// Standard output cannot be written; a residency that has no JSON.
    pub fn run(self) -> Result<ExitCode> {
        self.print().map(status)
    }

    fn print(&self) -> Result<bool> {
        let with_map = output::is_for_people();
        let header = if with_map { format!("  {:<32}", "MAP") } else { String::new() };
        let mut separator = "";
        if self.json {
            output::json_part("[")?;
        } else {
            say!("CACHED%     CACHED       SIZE  MEANS    {header}  FILE")?;
        }
        let mut all_well = true;
        for path in self.files.iter().map(Path::new) {
            let seen = match self.look(path) {
                Ok(seen) => seen,
                Err(error) => {
                    complain(path, &error);
                    all_well = false;
                    continue;
                }
            };
            if self.json {
                let element = serde_json::to_string(&element(path, &seen))?;
                output::json_part(&format!("{separator}\n  {element}"))?;
                separator = ",";
            } else {
                say!("{}", row(path, &seen, with_map))?;
            }
        }
        if self.json {
            output::json("\n]")?;
        }
        Ok(all_well)
    }

    fn look(&self, path: &Path) -> Result<Residency, InputError> {
        let (file, _) = open(path)?;
        let options = Options {
            grain: self.grain.map(|grain| grain.get().next_power_of_two()),
            prediction_unit: self.unit.map(Bytes::get),
            probes_only: self.probe,
        };
        Ok(residency(&file, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_extremes_are_all_or_nothing() {
        let shown = [0.0, 1e-6, 0.5, 0.99999, 1.0].map(percent);
        assert_eq!(shown, ["0.0", "0.1", "50.0", "99.9", "100.0"]);
    }
}
