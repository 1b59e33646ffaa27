use super::*;

const NOW: Moment = Moment(7);

fn busy() -> Signals {
    Signals { cpu: 1.9, cpu_pressure_frac: 0.4, ..Signals::default() }
}

//= ms-manners/4.2-correlation
#[test]
fn quiet_needs_two_looks() {
    let mut detector = QuietDetector::default();
    detector.suspended();
    assert!(!detector.look(&busy()));
    assert!(!detector.look(&Signals::default()));
    assert!(detector.look(&Signals::default()));
    assert!(!detector.look(&busy()));
}

//= ms-manners/2-idle-detection
#[test]
fn a_steady_neighbour_that_never_harmed_does_not_hold_the_job() {
    let daemon = Signals { disk: 5e6, cpu: 0.5, ..Signals::default() };
    let mut detector = QuietDetector::default();
    assert_eq!(detector.while_running(NOW, &daemon, || None), Others::Busy);
    (0..100).for_each(|_| detector.good(Some(&daemon)));
    assert_eq!(detector.while_running(NOW, &daemon, || None), Others::AsUsual);
    detector.suspended();
    assert!(!detector.look(&Signals { cpu: 1.5, ..daemon }));
    assert!(!detector.look(&daemon));
    assert!(detector.look(&daemon));
}

#[test]
fn a_process_of_good_times_is_usual_from_the_first_look_on() {
    let server = Signals { cpu: 0.3, ..Signals::default() };
    let mut detector = QuietDetector::default();
    detector.good(None);
    detector.good(Some(&server));
    assert_eq!(detector.while_running(NOW, &server, || None), Others::AsUsual);
    assert_eq!(detector.while_running(NOW, &busy(), || None), Others::Busy);
    // One louder moment hardly raises what is usual.
    detector.good(Some(&busy()));
    assert_eq!(detector.while_running(NOW, &busy(), || None), Others::Busy);
}

//= ms-manners/3-external-resources
#[test]
fn what_slows_a_job_on_a_silent_machine_is_elsewhere() {
    let silent = Signals::default();
    let suspended = |looks: &[Signals]| {
        let mut detector = QuietDetector::default();
        detector.suspended();
        looks.iter().for_each(|look| _ = detector.look(look));
        detector
    };
    let mut detector = suspended(&[silent, silent]);
    let mut is_asked = false;
    let unknown = detector.while_running(NOW, &silent, || {
        is_asked = true;
        None
    });
    assert!(is_asked);
    assert_eq!(unknown, Others::Idle, "it is not known");
    assert_eq!(
        detector.while_running(NOW, &silent, || Some(0.3)),
        Others::Idle,
        "it waits for a disk"
    );
    assert_eq!(detector.while_running(NOW, &silent, || Some(0.01)), Others::Elsewhere);
    assert_eq!(detector.while_running(NOW, &busy(), || Some(0.01)), Others::Busy);
    assert_eq!(
        detector.while_running(NOW, &silent, || Some(0.01)),
        Others::Idle,
        "others were seen"
    );
    // Others' use of the network shows only while the job is suspended.
    let download = Signals { network: 5e6, ..silent };
    for looks in [&[silent][..], &[silent, download, silent], &[download, silent, silent]] {
        assert_eq!(
            suspended(looks).while_running(NOW, &silent, || Some(0.0)),
            Others::Idle,
            "{looks:?}"
        );
    }
    let mut detector = suspended(&[silent; 3]);
    let mut after = |time| detector.while_running(NOW.plus(time), &silent, || Some(0.0));
    let almost = BELIEVED_FOR.minus(Nanos(1));
    assert_eq!((after(Nanos(0)), after(almost)), (Others::Elsewhere, Others::Elsewhere));
    assert_eq!((after(BELIEVED_FOR), after(Nanos(0))), (Others::Idle, Others::Idle));
}

#[test]
fn a_process_that_stayed_through_a_suspension_counts_until_progress_is_good() {
    let mut detector = QuietDetector::default();
    detector.suspended();
    detector.look(&busy());
    assert_eq!(detector.while_running(NOW, &Signals::default(), || None), Others::Busy);
    detector.good(None);
    assert_eq!(detector.while_running(NOW, &Signals::default(), || None), Others::Idle);
    detector.look(&busy());
    detector.look(&Signals::default());
    assert_eq!(detector.while_running(NOW, &Signals::default(), || None), Others::Idle);
}

#[test]
fn any_one_busy_signal_is_enough() {
    for i in 0..SIGNALS {
        let mut values = [0.0; SIGNALS];
        values[i] = FLOOR[i] * 10.0;
        let [cpu, disk, disk_busy_frac, network, cpu_p, io_p, mem_p] = values;
        let signals = Signals {
            cpu,
            disk,
            disk_busy_frac,
            network,
            cpu_pressure_frac: cpu_p,
            io_pressure_frac: io_p,
            memory_pressure_frac: mem_p,
        };
        let mut detector = QuietDetector::default();
        let others = detector.while_running(NOW, &signals, || None);
        detector.suspended();
        assert!(!(0..10).any(|_| detector.look(&signals)), "signal {i}");
        assert_eq!(others == Others::Idle, OWN[i], "signal {i}");
    }
}
