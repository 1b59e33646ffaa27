use discnice_requirements::skip;

use super::*;
use std::process::Command;

fn event(kind: u32, at: u64, numbers: [u32; 4]) -> Vec<u8> {
    let head = [76, 3, 0, 0, 1, 1, 0, 0, 40, kind, 0, at as u32, (at >> 32) as u32];
    head.iter().chain(&numbers).flat_map(|word| word.to_ne_bytes()).collect()
}

fn told(births: &[(u32, u32, u64)]) -> ForkEvents {
    let mut all = ForkEvents::default();
    for (parent, child, at) in births {
        all.note(&event(BIRTH, *at, [*parent, *parent, *child, *child]));
    }
    all
}

#[test]
fn the_line_of_a_process_is_known() {
    let births = told(&[(10, 11, 1), (11, 12, 2), (12, 13, 3), (20, 21, 4)]);
    let line = [(12, 2), (11, 1), (10, 0)].map(|(id, at)| Ancestor { id, born: Moment(at) });
    assert_eq!(births.ancestors(13), line);
    assert!(births.ancestors(10).is_empty());
    // A number that is given to another belongs to that one.
    let births = told(&[(10, 11, 1), (11, 12, 2), (30, 11, 3)]);
    assert_eq!(births.ancestors(11), [Ancestor { id: 30, born: Moment::FIRST }]);
    assert_eq!(
        told(&[(1, 2, 1), (2, 1, 2)]).ancestors(1).len(),
        tuning::discovery::GENERATIONS,
        "a circle ends"
    );
}

#[test]
fn only_births_of_processes_count() {
    let mut births = ForkEvents::default();
    births.note(&event(BIRTH, 1, [10, 10, 12, 11]));
    births.note(&event(2, 1, [10, 10, 11, 11]));
    births.note(&event(BIRTH, 1, [10, 10, 11, 11])[..60]);
    births.note(&[]);
    assert!(births.take_born().is_empty());
}

#[test]
fn those_that_execute_programs_are_told_once() {
    let mut births = ForkEvents::default();
    births.note(&event(EXECUTION, 1, [10, 11, 0, 0]));
    assert_eq!((births.take_executed(), births.take_executed()), (vec![11], vec![]));
    (0..100).for_each(|_| births.note(&event(EXECUTION, 1, [10, 11, 0, 0])));
    assert_eq!(births.take_executed().len(), tuning::discovery::EXECUTED);
}

#[test]
fn the_oldest_are_forgotten_and_every_birth_is_told_of() {
    let (mut births, kept) = (ForkEvents::default(), tuning::discovery::FORKS_KEPT as u32);
    for child in 0..2 * kept + 1 {
        births.note(&event(BIRTH, child.into(), [u32::MAX, u32::MAX, child, child]));
    }
    assert_eq!(births.take_born().len(), 2 * kept as usize + 1);
    assert!(births.ancestors(kept - 1).is_empty());
    assert_eq!(births.ancestors(kept).len(), 1);
    births.note(&event(BIRTH, 0, [7, 7, kept, kept]));
    assert_eq!(births.ancestors(kept)[0].id, 7, "its number was given to another");
}

#[test]
fn grandchildren_are_known_though_their_parents_have_ended() {
    let mut births = ForkEvents::begin();
    // Before Linux 6.6 only the superuser is told, in a container no user.
    if !births.are_told() {
        skip!("the kernel tells this user of no births");
    }
    let script = "(sh -c 'echo $$; exec sleep 100 > /dev/null 2>&1' & )";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    let id: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    births.follow();
    let line = births.ancestors(id);
    assert!(line.iter().any(|one| one.id == std::process::id()), "{line:?}");
    assert!(line.len() >= 3, "{line:?}");
    let id = rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}
