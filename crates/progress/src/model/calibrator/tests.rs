use super::*;

fn teach(calibrator: &mut Calibrator, config: &Config, count: u32, seconds: f64, quiet: bool) {
    for _ in 0..count {
        let sample = Sample {
            duration: seconds,
            elapsed: Nanos((seconds * 1e9) as u64),
            progress: &[1.0],
            quiet,
            weight: 1.0,
        };
        calibrator.learn(config, &sample);
    }
}

//= ms-manners/4.3-bootstrap
#[test]
fn bootstrap_has_no_target_and_bounds_the_job() {
    let config = Config::default();
    let mut calibrator = Calibrator::new(1);
    teach(&mut calibrator, &config, config.bootstrap - 1, 0.1, false);
    assert_eq!(calibrator.target_duration(&[1.0]), None);
    assert_eq!(calibrator.duty_limit(&config), Some(0.2));
    teach(&mut calibrator, &config, 1, 0.1, false);
    assert!((calibrator.target_duration(&[2.0]).unwrap() - 0.2).abs() < 1e-9);
    assert!(!calibrator.is_settled());
}

//= ms-manners/3-long-running
#[test]
fn a_quiet_machine_needs_no_probation() {
    let config = Config::default();
    let mut calibrator = Calibrator::new(1);
    teach(&mut calibrator, &config, 1, 0.1, true);
    assert_eq!(calibrator.duty_limit(&config), None);
    teach(&mut calibrator, &config, config.bootstrap, 0.1, true);
    assert!(calibrator.is_settled());
}

//= ms-manners/11-fewer-measurements
#[test]
fn quiet_testpoints_correct_a_start_under_load() {
    let config = Config::default();
    let mut calibrator = Calibrator::new(1);
    teach(&mut calibrator, &config, 500, 0.3, false);
    assert!((calibrator.target_duration(&[1.0]).unwrap() - 0.3).abs() < 1e-6);
    teach(&mut calibrator, &config, config.bootstrap, 0.1, true);
    assert!((calibrator.target_duration(&[1.0]).unwrap() - 0.1).abs() < 1e-6);
    assert!(calibrator.is_settled());
}

//= ms-manners/4.3-average
//= ms-manners/6.2-rule
#[test]
fn equation_4_averages_rates() {
    let config = Config { probation: Nanos(0), ..Config::paper() };
    let mut calibrator = Calibrator::new(1);
    teach(&mut calibrator, &config, 20_000, 1.0, false);
    teach(&mut calibrator, &config, 10_000, 0.5, false);
    // 1 + (1 - xi^n) with xi^n = 1/e.
    let rate = 1.0 / calibrator.target_duration(&[1.0]).unwrap();
    assert!((rate - (2.0 - (-1.0f64).exp())).abs() < 1e-3, "{rate}");
}

//= ms-manners/4.3-average
#[test]
fn a_testpoint_with_a_thousand_times_the_progress_weighs_no_more_than_others() {
    let config = Config::default();
    for (quiet, burst) in [(true, 0), (true, 30), (true, 90), (false, 0), (false, 30), (false, 90)]
    {
        let mut calibrator = Calibrator::new(1);
        for done in 0..2000 {
            let progress = &[if done % 100 == burst { 1000.0 } else { 1.0 }];
            let elapsed = Nanos(100_000_000);
            let sample = Sample { duration: 0.1, elapsed, progress, quiet, weight: 1.0 };
            calibrator.learn(&config, &sample);
        }
        let seconds = calibrator.target_duration(&[1.0]).unwrap();
        assert!((seconds / 0.1 - 1.0).abs() < 0.05, "{seconds}, quiet {quiet}, burst {burst}");
    }
}

#[test]
fn each_metric_of_a_job_that_does_several_things_in_turn_gets_its_time() {
    let config = Config::default();
    for computes in [3, 60] {
        let mut calibrator = Calibrator::new(2);
        for done in 0..400 {
            // It computes and writes a line, or it reads; a few per cent more or less.
            let jitter = 1.0 + 0.02 * f64::from(done % 7 - 3);
            let progress = &match done < computes || done % 3 > 0 {
                true => [0.2 * jitter, 1e3],
                false => [0.02, 2e7],
            };
            let elapsed = Nanos(200_000_000);
            let sample = Sample { duration: 0.2, elapsed, progress, quiet: true, weight: 1.0 };
            calibrator.learn(&config, &sample);
        }
        for progress in [[0.2, 1e3], [0.02, 2e7]] {
            let seconds = calibrator.target_duration(&progress).unwrap();
            assert!((seconds / 0.2 - 1.0).abs() < 0.05, "{progress:?}: {seconds}");
        }
    }
}

//= ms-manners/4.3-probation
#[test]
fn probation_ends_when_served() {
    let config = Config::default();
    let mut calibrator = Calibrator::new(1);
    teach(&mut calibrator, &config, 3601, 1.0, false);
    assert!(calibrator.is_settled());
    assert_eq!(calibrator.duty_limit(&config), None);
}

#[test]
fn what_the_papers_calibration_has_learned_is_learned_on_from() {
    let [paper, ours] =
        [Config::paper(), Config::default()].map(|config| Config { probation: Nanos(0), ..config });
    let mut calibrator = Calibrator::new(1);
    teach(&mut calibrator, &paper, 300, 0.1, false);
    teach(&mut calibrator, &ours, 100, 0.2, false);
    let seconds = calibrator.target_duration(&[1.0]).unwrap();
    assert!((0.12..0.2).contains(&seconds), "{seconds}");
}
