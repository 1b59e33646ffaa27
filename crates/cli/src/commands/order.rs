//! `discnice order`: files, or the parts of one file, in best access order (gray-box paper,
//! sections 4.1.2 and 4.2.4).

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use discnice_graybox::input::{InputError, open, reason};
use discnice_graybox::order::{
    By, CatOptions, Delimiter, ListOptions, Names, OrderError, cat, list, list_names,
};
use discnice_graybox::profile::access_unit;
use discnice_units::Bytes;

use super::file_status::{complain, status};
use crate::output::{self, Unsaid};
use crate::values;

const EXAMPLES: &str = "\
Examples:
  discnice order --cached *.log                 cached files first
  find . -type f -print0 | discnice order -0 | xargs -0 cat
  discnice order --cat big.log | grep error     cached parts first";

/// Print file names in the order in which reading the files costs the disk least
///
/// Without FILE, names are read from standard input.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Order {
    /// Print the files with the largest cached part first
    #[arg(long, conflicts_with_all = ["layout", "compose"])]
    cached: bool,
    /// Print the files in the order in which they lie on the disk
    #[arg(long, conflicts_with = "compose")]
    layout: bool,
    /// Print cached files first, then the others, both in the order in which they lie on the disk (the default)
    #[arg(long)]
    compose: bool,
    /// Names end with a zero byte instead of a newline, in input and output
    #[arg(short = '0', long)]
    null: bool,
    /// Order this many names at a time, so that endless input takes a bounded amount of memory
    #[arg(long, value_name = "N", default_value = "1048576", allow_hyphen_values = true,
          value_parser = values::positive)]
    window: std::num::NonZeroU32,
    /// Write the content of one FILE instead, its cached parts first
    #[arg(long, conflicts_with_all = ["layout", "compose", "null"])]
    cat: bool,
    /// With --cat: keep records of N bytes whole
    #[arg(long, value_name = "N", requires = "cat")]
    align: Option<Bytes>,
    /// With --cat: bytes to read at a time
    #[arg(long, value_name = "SIZE", requires = "cat")]
    unit: Option<Bytes>,
    /// Files to order
    #[arg(value_name = "FILE")]
    files: Vec<OsString>,
}

impl Order {
    /// Lists or writes; 1 if some input failed.
    ///
    /// # Errors
    /// Wrong usage; a failing output.
    pub fn run(self) -> Result<ExitCode> {
        if self.cat && self.files.len() != 1 {
            bail!("order --cat needs exactly one FILE; give one");
        }
        let mut out = output::bytes()?;
        let done = if self.cat { self.cat_to(&mut out) } else { self.list_to(&mut out) };
        let flushed = |all_well| out.flush().map(|()| all_well).map_err(OrderError::Output);
        match done.and_then(flushed) {
            Ok(all_well) => Ok(status(all_well)),
            Err(OrderError::Output(error)) => Err(Unsaid(error).into()),
            Err(OrderError::Input(error)) => {
                let why = reason(&error);
                bail!("cannot read names from standard input: {why}; give them as FILEs")
            }
        }
    }

    //= gray-box/4.1.2-gbp-mem
    fn list_to(&self, out: &mut dyn Write) -> Result<bool, OrderError> {
        let by = match (self.cached, self.layout) {
            (true, _) => By::Cached,
            (_, true) => By::Layout,
            _ => By::Compose,
        };
        let delimiter = if self.null { Delimiter::Nul } else { Delimiter::Newline };
        let window = usize::try_from(self.window.get()).unwrap_or(usize::MAX);
        let options = ListOptions { by, delimiter, window, visible: output::is_for_people() };
        let mut tell = |path: &Path, error: &InputError| complain(path, error);
        let failed = if self.files.is_empty() {
            list(&mut io::stdin().lock(), out, &options, &mut tell)?
        } else {
            let mut names = Names::default();
            self.files.iter().for_each(|name| names.push(name));
            list_names(&names, out, &options, &mut tell).map_err(OrderError::Output)?
        };
        Ok(failed == 0)
    }

    fn cat_to(&self, out: &mut dyn Write) -> Result<bool, OrderError> {
        let path = Path::new(&self.files[0]);
        let (file, facts) = match open(path) {
            Ok(opened) => opened,
            Err(error) => {
                complain(path, &error);
                return Ok(false);
            }
        };
        let defaults = CatOptions::default();
        let options = CatOptions {
            access_unit: self.unit.map_or_else(|| access_unit(facts.dev), Bytes::get),
            align: self.align.map_or(defaults.align, Bytes::get),
        };
        match cat(&file, &options, out) {
            Err(OrderError::Input(error)) => {
                complain(path, &error.into());
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }
}
