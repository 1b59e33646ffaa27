//! Figure 1 of the gray-box paper, for today's means: which fraction of a file's pages does each
//! means classify right, against the truth (cachestat as owner), and how much does it read?
//!
//! `cargo run --release -p discnice-graybox --example fccd_accuracy -- DIR [MiB [PLOT.svg]]`
//!
//! For each access unit a new file of the size given (default 512 MiB) is made in DIR, emptied
//! out of the cache and read in access units at random places until about half of it is cached.
//! As root, the same file is also looked at as another user, to which it is foreign.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use discnice_graybox::fccd::{Heisenberg, Options, Region, Residency, residency};
use discnice_graybox::pagecache::{Means, mincore, page_size};
use discnice_graybox::toolbox::Correlation;
use discnice_plot::{Chart, Plot, Series, svg};
use rustix::fs::Advice;

const MIB: u64 = 1 << 20;
/// Makes this program look at its standard input and print what it sees.
const LOOK: &str = "--look";

fn main() -> io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|word| word == LOOK) {
        return print_look();
    }
    let dir = args.next().ok_or_else(|| io::Error::other("give a folder on the file system"))?;
    let mib = args.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(512);
    let plot = args.next();
    let mut lines: Vec<Series> = Vec::new();
    println!("access unit  means                   right %  extra read %  probes  correlation");
    for unit in [1, 10, 100] {
        let (file, foreign) = half_cached(Path::new(&dir), mib * MIB, unit * MIB)?;
        let truth = truth(&file)?;
        let own = |options| move |file: &File| residency(file, &options);
        let ways: [(_, Box<Look<'_>>); 5] = [
            ("best honest", Box::new(own(Options::default()))),
            ("foreign", Box::new(|_: &File| as_nobody(&foreign))),
            ("probes, 0.1 %", Box::new(own(Options { probes_only: true, ..Options::default() }))),
            ("probes, access unit", Box::new(own(probes(unit * MIB)))),
            ("probes, 256 KiB", Box::new(own(probes(256 << 10)))),
        ];
        let root = rustix::process::geteuid().is_root();
        for (name, look) in ways.into_iter().filter(|(name, _)| root || *name != "foreign") {
            let before = truth_count(&truth);
            let seen = look(&file)?;
            let right = right_share(&seen, &truth);
            let brought = truth_count(&self::truth(&file)?).saturating_sub(before);
            let share = brought as f64 * page_size() as f64 / (mib * MIB) as f64;
            println!(
                "{unit:>7} MiB  {name:<20} {:>9.2} {:>13.3} {:>7}  {}",
                right * 100.0,
                share * 100.0,
                seen.heisenberg.probes,
                correlation(&truth, unit * MIB).map_or("-".into(), |r| format!("{r:.2}")),
            );
            restore(&file, &truth)?;
            let point = (unit as f64, right * 100.0);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => lines.push(Series { name: name.into(), points: vec![point] }),
            }
        }
    }
    plot.map_or(Ok(()), |path| std::fs::write(path, svg::draw(&figure(lines))))
}

/// A way to find out the residency of a file.
type Look<'a> = dyn Fn(&File) -> io::Result<Residency> + 'a;

/// Looks as a user to which the file is foreign and that has it open for reading only.
fn as_nobody(file: &File) -> io::Result<Residency> {
    const NOBODY: u32 = 65534;
    let mut command = Command::new(std::env::current_exe()?);
    let out = command.arg(LOOK).stdin(file.try_clone()?).uid(NOBODY).gid(NOBODY).output()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let numbers = |line: &str| -> Option<Vec<u64>> {
        line.split(' ').map(|word| word.parse().ok()).collect()
    };
    let mut rows = text.lines().filter_map(numbers);
    let nothing = || io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned());
    let head = rows.next().filter(|head| head.len() == 2).ok_or_else(nothing)?;
    let regions =
        rows.map(|row| Region { offset: row[0], length: row[1], cached_bytes: row[2] }).collect();
    let heisenberg = Heisenberg { probes: head[1], ..Heisenberg::default() };
    Ok(Residency { size: head[0], means: Means::Probe, regions, heisenberg })
}

/// The other side of [`as_nobody`]: size and probes, then a line for each region.
fn print_look() -> io::Result<()> {
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let seen = residency(&file, &Options::default())?;
    println!("{} {}", seen.size, seen.heisenberg.probes);
    for Region { offset, length, cached_bytes } in seen.regions {
        println!("{offset} {length} {cached_bytes}");
    }
    Ok(())
}

/// What is right, over the size of the pieces in which the file was read.
fn figure(series: Vec<Series>) -> Plot {
    Plot {
        title: "Pages that each means classifies right".into(),
        x_label: "access unit in MiB".into(),
        y_label: "right pages in %".into(),
        chart: Chart::Lines { series, threshold: Some(95.0) },
    }
}

fn probes(unit: u64) -> Options {
    Options { probes_only: true, prediction_unit: Some(unit), ..Options::default() }
}

/// The file, and once more for reading only.
fn half_cached(dir: &Path, size: u64, unit: u64) -> io::Result<(File, File)> {
    let mut file = tempfile::tempfile_in(dir)?;
    let mut chunk = vec![0; MIB as usize];
    for _ in 0..size / MIB {
        fastrand::fill(&mut chunk);
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    // Before anything is cached: some FUSE file systems give up a file's pages when it is opened.
    let for_reading = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    // Nothing but the access units themselves.
    rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
    while truth_count(&truth(&file)?) * page_size() < size / 2 {
        let start = fastrand::u64(0..=(size - unit.min(size)));
        for at in (start..start + unit).step_by(MIB as usize) {
            file.read_at(&mut chunk, at)?;
        }
    }
    Ok((file, for_reading))
}

fn truth(file: &File) -> io::Result<Vec<bool>> {
    let mut pages = Vec::new();
    let size = file.metadata()?.len();
    mincore(file.as_raw_fd(), 0, size, |_, resident| pages.push(resident))
        .map_err(|error| io::Error::from_raw_os_error(error.0))?;
    Ok(pages)
}

fn truth_count(truth: &[bool]) -> u64 {
    truth.iter().filter(|page| **page).count() as u64
}

/// Gives up what the probing has brought in.
fn restore(file: &File, truth: &[bool]) -> io::Result<()> {
    let page = page_size();
    for (index, resident) in (0..).zip(truth) {
        if !resident {
            let one = std::num::NonZeroU64::new(page);
            rustix::fs::fadvise(file, index * page, one, Advice::DontNeed)?;
        }
    }
    Ok(())
}

fn right_share(seen: &Residency, truth: &[bool]) -> f64 {
    let page = page_size();
    let right = (0..).zip(truth).filter(|(index, resident)| {
        (seen.cached_within(index * page, page) * 2 >= page) == **resident
    });
    right.count() as f64 / truth.len() as f64
}

/// Correlation of a random page's presence with the cached part of the prediction unit around it,
/// as the paper plots it, with a prediction unit of 4 MiB or the access unit if that is less.
fn correlation(truth: &[bool], unit: u64) -> Option<f64> {
    let pages = (unit.min(4 * MIB) / page_size()) as usize;
    let mut correlation = Correlation::default();
    for unit in truth.chunks(pages) {
        let cached = truth_count(unit) as f64 / unit.len() as f64;
        correlation.push(f64::from(u8::from(unit[fastrand::usize(..unit.len())])), cached);
    }
    correlation.coefficient()
}
