use super::*;

#[test]
fn file_systems_keep_their_slots() {
    let all = FileSystems::default();
    let slots: Vec<usize> = (0..40).map(|device| all.slot(device * 31)).collect();
    assert_eq!(slots, (0..40).map(|device| all.slot(device * 31)).collect::<Vec<_>>());
    let mut own: Vec<usize> = slots.iter().copied().filter(|slot| *slot != OTHERS).collect();
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), OTHERS, "every slot is used before the common one");
}

#[test]
fn what_a_wait_costs_is_learnt_where_the_account_speaks() {
    let (spoken, silent) = (FileSystem::default(), FileSystem::default());
    let (mut told, mut untold) = (0, 0);
    // Every twentieth reads a stretch of an inode table, the others a directory's block.
    for number in 0..1000u64 {
        let truth = if number.is_multiple_of(20) { 132 << 10 } else { BLOCK };
        let predicted = spoken.waited(1, Access::Changes);
        told += predicted;
        spoken.note(CallKind::Metadata, predicted, truth);
        let predicted = silent.waited(2, Access::Looks);
        untold += predicted;
        silent.note(CallKind::Metadata, predicted, 0);
    }
    let truth = spoken.compared(CallKind::Metadata).account;
    assert!(told.abs_diff(truth) * 50 < truth, "{told} of {truth}");
    assert_eq!(untold, 64 * BLOCK + (2000 - 64) * ANSWER);
    assert_eq!(silent.waited(2, Access::Changes), 0);
    assert_eq!(spoken.waited(0, Access::Looks), 0);
}

#[test]
fn what_is_counted_by_itself_costs_no_wait() {
    let fs = FileSystem::default();
    fs.set_inode_table(InodeTable::of("ext4"));
    assert_eq!((fs.waited(1, Access::Looks), fs.waited(3, Access::Counted)), (NAME, 0));
    fs.note(CallKind::Metadata, NAME, 100 * BLOCK);
    assert!(fs.waited(1, Access::Looks) > BLOCK, "an account says more");
}

#[test]
fn waits_for_something_else_stop_counting() {
    let fs = FileSystem::default();
    fs.note(CallKind::Metadata, fs.waited(1, Access::Looks), BLOCK);
    let later = (0..1000).map(|_| {
        let predicted = fs.waited(1, Access::Looks);
        fs.note(CallKind::Metadata, predicted, 0);
        predicted
    });
    assert!(later.sum::<u64>() < 20 * BLOCK);
}

#[test]
fn calibration_says_first_whether_the_account_speaks() {
    let fs = FileSystem::default();
    for (charged, verdict) in [(0.0, Verdict::Silent), (1.0, Verdict::Accounted)] {
        fs.calibrate(Verdict::of_reads(charged));
        assert_eq!(fs.verdict(), verdict);
    }
    fs.note(CallKind::Read, ENOUGH, 0);
    assert_eq!(fs.verdict(), Verdict::Silent, "what is seen says more");
}

#[test]
fn what_lies_in_memory_is_asked_once_of_each_but_the_common_one() {
    let all = FileSystems::default();
    let (memory, disk) = (all.get(all.slot(1)).unwrap(), all.get(all.slot(2)).unwrap());
    assert!(memory.is_in_memory(|| true) && !disk.is_in_memory(|| false));
    let asked = || unreachable!("it is known");
    assert!(memory.is_in_memory(asked) && !disk.is_in_memory(asked));
    let others = all.get(OTHERS).unwrap();
    assert!(others.is_in_memory(|| true) && !others.is_in_memory(|| false));
}

#[test]
fn an_account_is_judged_by_reads() {
    let fs = FileSystem::default();
    fs.note(CallKind::Write, 1 << 30, 0);
    assert_eq!(fs.verdict(), Verdict::Undecided);
    fs.calibrate(Verdict::Silent);
    assert_eq!(fs.verdict(), Verdict::Silent);
    fs.note(CallKind::Read, ENOUGH, ENOUGH / 2);
    assert_eq!(fs.verdict(), Verdict::Accounted, "what is seen overrules");
    fs.note(CallKind::Read, 100 * ENOUGH, 0);
    assert_eq!(fs.verdict(), Verdict::Silent);
}

#[test]
fn waits_are_counted_for_as_long_as_a_machine_runs() {
    let fs = FileSystem::default();
    fs.waits.store(u32::MAX, R);
    let so_far = u64::from(u32::MAX) * BLOCK;
    fs.note(CallKind::Metadata, so_far, so_far);
    for _ in 0..10 {
        let predicted = fs.waited(1, Access::Looks);
        assert!(predicted <= 2 * BLOCK, "{predicted}");
        fs.note(CallKind::Metadata, predicted, BLOCK);
    }
}
