//! `gbp`: the gray-box paper's utility with its flags, for use in backquotes:
//! ``grep foo `gbp -mem *` ``, `gbp -mem -out infile | app -`.

use std::ffi::OsString;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use discnice_escape::visible;
use discnice_graybox::input::{InputError, open, reason, shown};
use discnice_graybox::order::{
    By, CatOptions, Delimiter, ListOptions, Names, OrderError, cat, list, list_names,
};

const USAGE: &str = "usage: gbp [-mem | -file | -compose] [-0] [FILE...]
       gbp [-mem] -out [-align N] FILE

Prints FILEs (or the names on standard input) in best access order.
  -mem      cached files first
  -file     as they lie on the disk
  -compose  cached files, then the others, each as they lie on the disk (default)
  -out      write the bytes of one FILE, cached parts first
  -align N  with -out: records are N bytes long and stay whole
  -0        names end in a zero byte instead of a newline, in and out
";

#[derive(Default)]
struct Args {
    by: By,
    out: bool,
    align: u64,
    delimiter: Delimiter,
    files: Vec<OsString>,
}

/// What to print instead of working, and whether it is an error.
enum Stop {
    Help,
    Wrong(String),
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Args, Stop> {
    let mut args = Args { align: 1, ..Args::default() };
    let mut flags = true;
    while let Some(word) = words.next() {
        match word.to_str().filter(|text| flags && text.starts_with('-') && *text != "-") {
            None => args.files.push(word),
            Some("--") => flags = false,
            Some("-mem") => args.by = By::Cached,
            Some("-file") => args.by = By::Layout,
            Some("-compose") => args.by = By::Compose,
            Some("-out") => args.out = true,
            Some("-0") => args.delimiter = Delimiter::Nul,
            Some("-align") => {
                let number = words.next().and_then(|word| word.to_str()?.parse().ok());
                args.align = number
                    .filter(|align| *align > 0)
                    .ok_or_else(|| Stop::Wrong("-align needs a number of bytes above 0".into()))?;
            }
            Some("-h" | "-help" | "--help") => return Err(Stop::Help),
            Some(other) => return Err(Stop::Wrong(format!("unknown flag {other}; see gbp -help"))),
        }
    }
    if args.out && args.files.len() != 1 {
        return Err(Stop::Wrong("-out needs exactly one FILE".into()));
    }
    Ok(args)
}

/// Writes a line to standard error; whatever stands in it, a terminal obeys nothing of it.
fn tell(line: Arguments<'_>) {
    // If that fails there is nothing left to tell it to.
    let _ = writeln!(io::stderr(), "gbp: {}", visible(&line.to_string()));
}

fn complain(path: &Path, error: &InputError) {
    tell(format_args!("{}: {error}", shown(path)));
}

//= gray-box/4.1.2-gbp-mem
/// Prints the order of the files; returns false if some could not be read.
fn run(args: &Args) -> Result<bool, OrderError> {
    // Not by the standard library's own handle, which looks for the ends of lines.
    let out = io::stdout().as_fd().try_clone_to_owned().map_err(OrderError::Output)?;
    let mut out = BufWriter::new(File::from(out));
    if args.out {
        let path = Path::new(&args.files[0]);
        let file = match open(path) {
            Ok((file, _)) => file,
            Err(error) => {
                complain(path, &error);
                return Ok(false);
            }
        };
        let options = CatOptions { align: args.align, ..CatOptions::default() };
        return match cat(&file, &options, &mut out) {
            Err(OrderError::Input(error)) => {
                complain(path, &error.into());
                Ok(false)
            }
            done => done.map(|()| true),
        };
    }
    let options = ListOptions {
        by: args.by,
        delimiter: args.delimiter,
        visible: io::stdout().is_terminal(),
        ..ListOptions::default()
    };
    let failed = if args.files.is_empty() {
        list(&mut io::stdin().lock(), &mut out, &options, &mut complain)?
    } else {
        let mut names = Names::default();
        args.files.iter().for_each(|name| names.push(name));
        list_names(&names, &mut out, &options, &mut complain).map_err(OrderError::Output)?
    };
    out.flush().map_err(OrderError::Output)?;
    Ok(failed == 0)
}

fn main() -> ExitCode {
    let args = match parse(std::env::args_os().skip(1)) {
        Ok(args) => args,
        Err(Stop::Help) => {
            let _ = io::stdout().write_all(USAGE.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(Stop::Wrong(why)) => {
            tell(format_args!("{why}"));
            return ExitCode::from(125);
        }
    };
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader has seen enough, as in `gbp -mem * | head -1`.
        Err(OrderError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(OrderError::Output(error)) => {
            let why = reason(&error);
            tell(format_args!(
                "cannot write to standard output: {why}; redirect it to another file or pipe"
            ));
            ExitCode::from(125)
        }
        Err(OrderError::Input(error)) => {
            let why = reason(&error);
            tell(format_args!("cannot read names from standard input: {why}; give them as FILEs"));
            ExitCode::from(125)
        }
    }
}
