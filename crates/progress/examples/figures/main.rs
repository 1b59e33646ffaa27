//! Reproduces figures 7 to 10 of the paper in simulation, with the paper's plain back-off and
//! with ours: `cargo run -p discnice-progress --example figures [-- --csv]`.
//!
//! With `--csv`, prints the points of the figures instead: figure, variant, x, y.

mod isolation;
mod sim;
mod turns;

use discnice_progress::model::Config;
use discnice_units::Nanos;
use sim::{IDEAL, Job, Load, Random, Stretch};

const DAY: f64 = 86_400.0;

/// Calibrated on the idle machine before, without probation, as section 9.1 says.
fn calibrated(config: &Config, signals: bool) -> Job {
    let config = Config { probation: Nanos(0), ..config.clone() };
    let mut job = Job::new(&config, signals, 7);
    job.run(&Load(Vec::new()), f64::INFINITY, 2000);
    job.at = 0.0;
    job.stretches.clear();
    job.regulator = discnice_progress::model::Regulator::new(&config);
    job
}

/// One character for ten seconds: whether the job ran.
fn duty_line(stretches: &[Stretch], end: f64) -> String {
    (0..(end / 10.0) as u32)
        .map(|i| {
            let (from, to) = (f64::from(i) * 10.0, f64::from(i + 1) * 10.0);
            let ran: f64 =
                stretches.iter().map(|s| (s.to.min(to) - s.from.max(from)).max(0.0)).sum();
            if ran > 5.0 {
                '#'
            } else if ran > 0.0 {
                '+'
            } else {
                '.'
            }
        })
        .collect()
}

/// Figure 7, the duty, and figure 8, the normalised progress, with a load of 300 s (section 9.4).
fn figures_7_and_8(name: &str, config: &Config, signals: bool, csv: bool) {
    let mut job = calibrated(config, signals);
    let load = Load(vec![(30.0, 330.0)]);
    job.run(&load, 800.0, usize::MAX);
    if csv {
        for s in &job.stretches {
            println!("7,{name},{:.2},1\n7,{name},{:.2},0", s.from, s.to);
            println!("8,{name},{:.2},{:.3}", s.to, s.target / (s.to - s.from));
        }
        return;
    }
    let resumed = job.stretches.iter().find(|s| s.from >= 330.0).map_or(f64::NAN, |s| s.from);
    let (_, under_load) = job.activity(30.0, 330.0);
    let ran = job.activity(30.0, 330.0).0 * 300.0 * under_load;
    let good = |s: &&Stretch| s.from > resumed + 5.0;
    let after: Vec<_> = job.stretches.iter().filter(good).collect();
    let below = after.iter().filter(|s| s.to - s.from > s.target).count();
    println!("{name}\n  duty  {}", duty_line(&job.stretches, 800.0));
    println!(
        "  load  {}",
        (0..80).map(|i| if (3..33).contains(&i) { '=' } else { ' ' }).collect::<String>()
    );
    println!(
        "  ran {ran:.1} s of the 300 s of load; resumed {:.2} s after its end",
        resumed - 330.0
    );
    println!(
        "  afterwards {:.0} % of testpoints lay below target; it ran {:.1} % of the time\n",
        100.0 * below as f64 / after.len() as f64,
        100.0 * job.activity(resumed, 800.0).0
    );
}

/// Figure 9: which of two threads runs beside which load (section 9.5).
fn figure_9(name: &str, config: &Config, signals: bool, csv: bool) {
    let mut jobs = [calibrated(config, signals), calibrated(config, signals)];
    isolation::run(&mut jobs);
    if csv {
        for (thread, job) in isolation::NAMES.iter().zip(&jobs) {
            for s in &job.stretches {
                println!("9,{name} {thread},{:.2},1\n9,{name} {thread},{:.2},0", s.from, s.to);
            }
        }
        return;
    }
    println!("{name}\n  load on      thread of disk C ran   thread of disk D ran");
    for (load, from, to) in isolation::PHASES {
        let [c, d] = [0, 1].map(|i: usize| 100.0 * jobs[i].activity(from, to).0);
        println!("  {load:<10}   {c:18.1} %   {d:18.1} %");
    }
    println!();
}

/// Figure 10: calibration that starts within a burst of load (section 9.6).
fn figure_10(name: &str, config: &Config, signals: bool, csv: bool) {
    let mut job = Job::new(config, signals, 11);
    let load = Load::bursty(900.0, 2.0 * DAY, &mut Random(5));
    if !csv {
        println!("{name}\n  hours   target ms   from ideal   activity   of it under load");
    }
    let mut from = 0.0;
    // The first burst lasts a quarter of an hour.
    for to in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 18.0, 24.0, 36.0, 48.0].map(|h: f64| h * 3600.0)
    {
        job.run(&load, to, usize::MAX);
        let target = job.target().unwrap_or(f64::NAN);
        let (active, loaded) = job.activity(from, to);
        if csv {
            println!("10,{name},{:.2},{:.1}", to / 3600.0, target * 1e3);
        } else {
            println!(
                "  {:5.2}   {:9.0}   {:+9.1} %  {:7.1} %   {:6.1} %",
                to / 3600.0,
                target * 1e3,
                100.0 * (target / IDEAL - 1.0),
                100.0 * active,
                100.0 * loaded
            );
        }
        from = to;
    }
    let (active, loaded) = job.activity(DAY, 2.0 * DAY);
    if csv {
        println!(
            "10,{name} activity,48,{:.1}\n10,{name} loaded,48,{:.1}",
            100.0 * active,
            100.0 * loaded
        );
    } else {
        let share = load.share(DAY, 2.0 * DAY);
        println!(
            "  second day: load {:.1} %, activity {:.1} %, of it under load {:.1} %\n",
            100.0 * share,
            100.0 * active,
            100.0 * loaded
        );
    }
}

fn main() {
    let csv = std::env::args().any(|argument| argument == "--csv");
    if csv {
        println!("figure,variant,x,y");
    } else {
        println!("Figures 7 and 8: load from 30 s to 330 s; one character is 10 s\n");
    }
    figures_7_and_8("paper", &Config::paper(), false, csv);
    figures_7_and_8("ours", &Config::default(), true, csv);
    if !csv {
        println!("Figure 9: one thread at a time, priorities 200 and 100\n");
    }
    figure_9("paper", &Config::paper(), false, csv);
    figure_9("ours", &Config::default(), true, csv);
    if !csv {
        println!("Figure 10: calibration from within a load; ideal {:.0} ms\n", IDEAL * 1e3);
    }
    let plain = Config { early_probe: None, ..Config::default() };
    figure_10("paper", &Config::paper(), false, csv);
    let signs = Config { false_stop_hours: 0.0, ..plain.clone() };
    figure_10("ours without signals by the sign test", &signs, false, csv);
    figure_10("ours without signals", &plain, false, csv);
    figure_10("ours", &Config::default(), true, csv);
}
