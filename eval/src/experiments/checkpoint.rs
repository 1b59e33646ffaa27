//! A guest moves away and takes its checkpoint along, beside a web server on the same node: Rate Windows
//! section 5.1, figure 9. Over a link of 100 Mbit/s, with a small server and sender of ours.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use discnice_plot::{Chart, Plot, Series};

use super::servers::listening;
use super::two_tars::rate;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::Study;
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::lab::link::{self, Link};
use crate::stop;

/// The paper's checkpoint.
const CHECKPOINT: &str = "90MB";
/// What the guest may send while others are busy.
const THRESHOLD: &str = "1MB";
/// How long the checkpoint is alone before another process wants pages.
const APART: Duration = Duration::from_millis(2500);
/// How long the other process wants pages.
const BUSY: Duration = Duration::from_secs(4);
/// Each change takes so many seconds at most to be noticed, by the guest or by TCP.
const SETTLES: f64 = 2.0;
const SAMPLED: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(10);

const ALONE: &str = "server alone";
const POLICED: &str = "policed";
const FREE: &str = "not policed";

/// Rates of a web server and of a checkpoint beside it.
pub struct Checkpoint;

impl Experiment for Checkpoint {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Discnice, Requirement::Link]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = [(ALONE, 7.0), (POLICED, 11.0), (FREE, 10.0)];
        (cases.map(|(case, seconds)| (case.into(), seconds)).into(), scale.rounds(5, 1))
    }

    fn prepare(&self, _lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let link = Link::new()?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        let file = lab.memory().join("address");
        let mut serve = lab.workload("serve");
        serve.arg(&file).args(["--on", &link::NODE.to_string()]);
        let server = Job::start(&mut link.command(lab, &serve))?;
        sample.commands.push(server.words().to_owned());
        let address = listening(&file)?;
        let far = TcpListener::bind((link::MACHINE, 0)).context("cannot listen")?;
        let guest = guest(lab, &link, &step.case, &far)?;
        let begin = Instant::now();
        if let Some(guest) = &guest {
            sample.commands.push(guest.words().to_owned());
        }
        let courses = std::thread::scope(|scope| {
            let checkpoint =
                guest.is_some().then(|| scope.spawn(|| arrivals(accept(&far)?, begin, None)));
            std::thread::sleep(APART);
            sample.values.insert("begin".into(), begin.elapsed().as_secs_f64());
            let client = TcpStream::connect(&address).context("cannot connect to the server")?;
            let pages = arrivals(client, begin, Some(Instant::now() + BUSY))?;
            sample.values.insert("end".into(), begin.elapsed().as_secs_f64());
            let checkpoint = checkpoint.map(|thread| {
                thread.join().unwrap_or_else(|_| Err(anyhow!("the checkpoint's reader died")))
            });
            Ok::<_, anyhow::Error>((pages, checkpoint.transpose()?))
        })?;
        if let Some(guest) = guest {
            sample.values.insert("seconds".into(), guest.finish()?);
        }
        server.end()?;
        std::fs::remove_file(&file).context("cannot remove an address")?;
        sample.series.insert("server".into(), courses.0);
        sample.series.extend(courses.1.map(|course| ("guest".into(), course)));
        Ok(sample)
    }

    /// Keys: `policed`, `not policed`: the server's rate beside a checkpoint over that alone; `beside`:
    /// the policed checkpoint's rate beside the server in MB/s; `after`: over that before.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let of = |case: &str, series: &str, phase| {
            let samples = record.samples.iter().filter(|sample| sample.case == case);
            samples.filter_map(|s| rate(s, series, phase, SETTLES)).collect::<Vec<f64>>()
        };
        let alone = of(ALONE, "server", 1);
        for case in [POLICED, FREE] {
            let pairs = of(case, "server", 1).into_iter().zip(&alone);
            study.report(case, pairs.map(|(beside, alone)| beside / alone).collect());
            study.plots.extend(plot(record, case));
        }
        let beside = of(POLICED, "guest", 1);
        study.report("beside", beside.into_iter().map(|rate| rate / 1e6).collect());
        let pairs = of(POLICED, "guest", 2).into_iter().zip(of(POLICED, "guest", 0));
        study.report("after", pairs.map(|(after, before)| after / before).collect());
        study
    }
}

/// Starts the job that sends its checkpoint to `far`.
fn guest(lab: &Lab, link: &Link, case: &str, far: &TcpListener) -> anyhow::Result<Option<Job>> {
    let mut send = lab.workload("send");
    send.arg(far.local_addr()?.to_string()).args(["--size", CHECKPOINT]);
    let options = ["--net-up", THRESHOLD, "--when", "busy"];
    let command = match case {
        ALONE => return Ok(None),
        POLICED => lab.limited(&options, &send)?,
        _ => send,
    };
    Job::start(&mut link.command(lab, &command)).map(Some)
}

/// The guest's connection, unless it never comes.
fn accept(far: &TcpListener) -> anyhow::Result<TcpStream> {
    far.set_nonblocking(true)?;
    let until = Instant::now() + PATIENCE;
    loop {
        stop::check()?;
        match far.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                return Err(error).context("cannot take the checkpoint");
            }
            Err(_) if Instant::now() > until => bail!("the guest sends no checkpoint"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Bytes a second that come, at times since `begin`, until the sender hangs up or a moment is there.
fn arrivals(
    mut from: TcpStream,
    begin: Instant,
    until: Option<Instant>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    from.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 64 * 1024];
    let (mut course, mut since, mut bytes) = (Vec::new(), Instant::now(), 0);
    while until.is_none_or(|until| Instant::now() < until) {
        let got = from.read(&mut buffer).context("nothing comes over the link")?;
        if got == 0 {
            break;
        }
        bytes += got;
        if since.elapsed() >= SAMPLED {
            let rate = bytes as f64 / since.elapsed().as_secs_f64();
            course.push((begin.elapsed().as_secs_f64(), rate));
            (since, bytes) = (Instant::now(), 0);
        }
    }
    Ok(course)
}

fn plot(record: &Record, case: &str) -> Option<Plot> {
    let sample = record.samples.iter().find(|sample| sample.case == case)?;
    let series = ["server", "guest"].map(|name| {
        let course = sample.series.get(name).into_iter().flatten();
        let points = course.map(|(time, rate)| (*time, rate / 1e6)).collect();
        Series { name: if name == "guest" { "checkpoint" } else { name }.into(), points }
    });
    Some(Plot {
        title: format!("A checkpoint beside a web server, {case}"),
        x_label: "seconds".into(),
        y_label: "MB/s".into(),
        chart: Chart::Lines { series: series.into(), threshold: (case == POLICED).then_some(1.0) },
    })
}
