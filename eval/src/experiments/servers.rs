//! Three servers, each held to a rate of its own: Rate Windows section 5.2, figure 10. Over the
//! loopback device, with a small server of ours.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use discnice_plot::{Chart, Plot};

use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case};
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::stop;

/// Limits of the three in bytes a second.
const LIMITS: [u64; 3] = [1_500_000, 3_000_000, 6_000_000];
const MEASURED: Duration = Duration::from_secs(5);
/// What was sent ahead at once does not count.
const SETTLES: Duration = Duration::from_secs(1);

const DISCNICE: &str = "discnice";
const TRICKLE: &str = "trickle";
const FREE: &str = "not limited";

/// Three limited servers at once.
pub struct Servers;

impl Experiment for Servers {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Discnice]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = [DISCNICE, TRICKLE, FREE].map(|case| (case.to_owned(), 6.5));
        (cases.into(), scale.rounds(5, 1))
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        (case == TRICKLE).then(|| Requirement::Program("trickle").lack(&lab.site)).flatten()
    }

    fn prepare(&self, _lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        let mut servers = Vec::new();
        for (number, limit) in LIMITS.iter().enumerate() {
            let address = lab.memory().join(format!("address-{number}"));
            let job = Job::start(&mut server(lab, &step.case, *limit, &address)?)?;
            sample.commands.push(job.words().to_owned());
            servers.push((job, address));
        }
        let addresses =
            servers.iter().map(|(_, file)| listening(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let rates = std::thread::scope(|scope| {
            let clients: Vec<_> =
                addresses.iter().map(|address| scope.spawn(|| rate_of(address))).collect();
            let joined = clients.into_iter().map(|client| client.join());
            joined
                .map(|rate| rate.unwrap_or_else(|_| Err(anyhow!("a client died"))))
                .collect::<anyhow::Result<Vec<f64>>>()
        })?;
        for (number, rate) in rates.into_iter().enumerate() {
            sample.values.insert(format!("rate {}", number + 1), rate);
        }
        for (job, address) in servers {
            job.end()?;
            fs::remove_file(address).context("cannot remove an address")?;
        }
        Ok(sample)
    }

    /// Keys: `limit N`: rate in MB/s of the N-th server under discnice, `trickle N` the same.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let mut bars = Vec::new();
        for number in 1..=LIMITS.len() {
            for (case, key) in [(DISCNICE, "limit"), (TRICKLE, "trickle"), (FREE, "free")] {
                let rates = of_case(&record.samples, case, &format!("rate {number}"));
                let rates: Vec<f64> = rates.into_iter().map(|rate| rate / 1e6).collect();
                if key != "free" {
                    bars.push((format!("{case}, server {number}"), rates.clone()));
                }
                study.report(&format!("{key} {number}"), rates);
            }
        }
        study.plots.push(Plot {
            title: "Rates of three servers, limited to 1.5, 3 and 6 MB/s".into(),
            x_label: String::new(),
            y_label: "MB/s".into(),
            chart: Chart::Boxes(bars),
        });
        study
    }
}

fn server(lab: &Lab, case: &str, limit: u64, address: &Path) -> anyhow::Result<Command> {
    let mut plain = lab.workload("serve");
    plain.arg(address);
    match case {
        DISCNICE => {
            let rate = format!("{limit}B");
            lab.limited(&["--net-up", &rate, "--net-loopback=yes"], &plain)
        }
        TRICKLE => {
            // trickle(1) counts in units of 1024 bytes.
            let mut command = lab.command("trickle");
            command.args(["-s", "-u", &(limit / 1024).to_string()]);
            command.arg(plain.get_program()).args(plain.get_args());
            Ok(command)
        }
        _ => Ok(plain),
    }
}

/// The address that a server has written once it listens.
pub(super) fn listening(file: &Path) -> anyhow::Result<String> {
    for _ in 0..100 {
        stop::check()?;
        match fs::read_to_string(file) {
            Ok(address) if address.ends_with('\n') => return Ok(address.trim_end().to_owned()),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    bail!("a server does not begin to listen")
}

/// Bytes a second that come from a server.
fn rate_of(address: &str) -> anyhow::Result<f64> {
    let mut stream = TcpStream::connect(address).context("cannot connect to a server")?;
    stream.set_read_timeout(Some(MEASURED))?;
    let mut buffer = vec![0; 64 * 1024];
    let begin = Instant::now();
    let mut counted: Option<(Instant, u64)> = None;
    loop {
        let got = stream.read(&mut buffer).context("a server sends nothing")?;
        if got == 0 {
            bail!("a server has hung up");
        }
        match &mut counted {
            None if begin.elapsed() >= SETTLES => counted = Some((Instant::now(), 0)),
            None => {}
            Some((from, bytes)) => {
                *bytes += got as u64;
                if from.elapsed() >= MEASURED {
                    return Ok(*bytes as f64 / from.elapsed().as_secs_f64());
                }
            }
        }
    }
}
