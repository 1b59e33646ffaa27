//! Figures 5 and 6 of the gray-box paper on a modelled disk: how long does it take to read all
//! small files of a directory, fresh, aged and refreshed, in random, inode and physical order?
//!
//! `cargo run --release -p discnice-graybox --example layout_model -- DIR [FILES [PLOT.svg]]`
//!
//! The layouts are real: the files are made, aged and refreshed on the file system of DIR, and
//! their extents are the kernel's answers. The disk is a model, stated below, as machines with a
//! turning one have become rare. Limitations: no reading of inodes, no queue, no track cache.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use discnice_graybox::fldc::{extents, refresh};
use discnice_graybox::input::open;
use discnice_graybox::toolbox::Stats;
use discnice_plot::{Chart, Plot, Series, svg};

/// A disk of 1 TB with 7200 turns a minute.
mod disk {
    pub const CAPACITY: f64 = 1e12;
    /// Shortest seek and what the longest takes more, seconds; in between by the square root.
    pub const SETTLE: f64 = 0.0008;
    pub const FULL_STROKE: f64 = 0.016;
    /// Half a turn.
    pub const ROTATION: f64 = 60.0 / 7200.0 / 2.0;
    pub const BYTES_PER_SECOND: f64 = 150e6;
}

/// Seconds for reading the extents (physical byte, length) one after the other.
fn model(accesses: &[(u64, u64)]) -> f64 {
    let mut seconds = 0.0;
    let mut head: Option<u64> = None;
    for (start, length) in accesses {
        let distance = head.map_or(f64::INFINITY, |head| start.abs_diff(head) as f64);
        let ahead = head.is_some_and(|head| *start >= head);
        let stroke = (distance.min(disk::CAPACITY) / disk::CAPACITY).sqrt();
        let seek = disk::SETTLE + disk::FULL_STROKE * stroke + disk::ROTATION;
        // What comes soon under the head is waited for.
        let wait = if ahead { distance / disk::BYTES_PER_SECOND } else { f64::INFINITY };
        seconds += seek.min(wait) + *length as f64 / disk::BYTES_PER_SECOND;
        head = Some(start + length);
    }
    seconds
}

struct Laid {
    ino: u64,
    accesses: Vec<(u64, u64)>,
}

fn layout(dir: &Path) -> io::Result<Vec<Laid>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let (file, facts) = open(&entry?.path()).map_err(io::Error::other)?;
        let accesses = extents(&file)?.iter().map(|e| (e.physical, e.length)).collect();
        files.push(Laid { ino: facts.ino, accesses });
    }
    Ok(files)
}

fn seconds(files: &[Laid]) -> f64 {
    let accesses: Vec<_> = files.iter().flat_map(|file| file.accesses.iter().copied()).collect();
    model(&accesses)
}

/// Prints the times in each order, in seconds, and adds them to the curves at `epoch`.
fn report(name: &str, epoch: u32, dir: &Path, curves: &mut [Series; 3]) -> io::Result<()> {
    File::open(dir)?.sync_all()?;
    let mut files = layout(dir)?;
    let mut random = Stats::default();
    for _ in 0..30 {
        fastrand::shuffle(&mut files);
        random.push(seconds(&files));
    }
    files.sort_by_key(|file| file.ino);
    let inode = seconds(&files);
    files.sort_by_key(|file| file.accesses.first().copied());
    let physical = seconds(&files);
    println!(
        "{name:<10} random {:7.3} s +- {:.3}   inode {inode:7.3} s ({:5.1}x)   physical {physical:7.3} s ({:5.1}x)",
        random.mean(),
        random.deviation(),
        random.mean() / inode,
        random.mean() / physical,
    );
    for (curve, seconds) in curves.iter_mut().zip([random.mean(), inode, physical]) {
        curve.points.push((f64::from(epoch), seconds));
    }
    Ok(())
}

fn make(path: PathBuf) -> io::Result<()> {
    let file = File::create(path)?;
    io::Write::write_all(&mut &file, &[7; 8192])?;
    file.sync_data()
}

fn main() -> io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let base = args.next().ok_or_else(|| io::Error::other("give a folder on the file system"))?;
    let count = args.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(100);
    let plot = args.next();
    let mut curves = ["random order", "inode order", "physical order"]
        .map(|name| Series { name: name.into(), points: Vec::new() });
    let top = tempfile::tempdir_in(base)?;
    let dir = top.path().join("files");
    let other = top.path().join("others");
    fs::create_dir(&dir)?;
    fs::create_dir(&other)?;
    for number in 0..count {
        make(dir.join(format!("{number}")))?;
    }
    report("fresh", 0, &dir, &mut curves)?;
    // The paper's aging, five files an epoch, with a neighbour file that also comes and goes.
    let mut next = count;
    for epoch in 1..=30 {
        for _ in 0..5 {
            let victims: Vec<_> = fs::read_dir(&dir)?.collect::<io::Result<_>>()?;
            fs::remove_file(victims[fastrand::usize(..victims.len())].path())?;
            make(other.join(format!("{next}")))?;
            make(dir.join(format!("{next}")))?;
            next += 1;
        }
        if epoch % 5 == 0 {
            report(&format!("epoch {epoch}"), epoch, &dir, &mut curves)?;
        }
    }
    refresh::refresh(&dir, &refresh::Options::default(), &mut |_, _, _| {})
        .map_err(io::Error::other)?;
    report("refreshed", 31, &dir, &mut curves)?;
    plot.map_or(Ok(()), |path| fs::write(path, svg::draw(&figure(curves))))
}

fn figure(curves: [Series; 3]) -> Plot {
    Plot {
        title: "Reading all small files of an aging directory, refreshed after 30 epochs".into(),
        x_label: "epoch".into(),
        y_label: "seconds on the modelled disk".into(),
        chart: Chart::Lines { series: curves.into(), threshold: None },
    }
}
