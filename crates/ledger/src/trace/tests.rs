use super::*;

fn ring() -> Box<Trace> {
    let zero = || AtomicU64::new(0);
    let place = || Place { turn: zero(), words: core::array::from_fn(|_| zero()), check: zero() };
    let places: Vec<Place> = (0..RECORDS).map(|_| place()).collect();
    let places = places.try_into().expect("as many");
    Box::new(Trace { until: AtomicU64::new(0), written: AtomicU64::new(0), places })
}

fn record(number: i64) -> Record {
    Record {
        at: Moment(7),
        process: 4711,
        thread: u32::MAX,
        name: *b"copy_file_range\0",
        first: Some(-1),
        why: Why::Slices,
        result: number,
        predicted: 1,
        charged: number.cast_unsigned(),
        took: Nanos(3),
        waited: Nanos(u64::MAX),
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let ring = ring();
    ring.write(&record(1));
    let mut reader = ring.reader();
    let wanted = [record(-5), Record { first: None, why: Why::Account, ..record(6) }];
    wanted.iter().for_each(|record| ring.write(record));
    let mut found = Vec::new();
    reader.read(true, |record| found.push(record));
    assert_eq!((found.as_slice(), reader.lost()), (wanted.as_slice(), 0));
    reader.read(true, |_| panic!("twice"));
}

#[test]
fn what_came_too_fast_and_what_was_left_unfinished_is_counted() {
    let ring = ring();
    let mut reader = ring.reader();
    (0..RECORDS as i64 + 10).for_each(|number| ring.write(&record(number)));
    // A member that was killed in between: it took a place and wrote nothing.
    ring.written.fetch_add(1, R);
    ring.write(&record(-1));
    let mut found = Vec::new();
    reader.read(true, |record| found.push(record.result));
    let (first, last) = (found.first().copied(), found.last().copied());
    assert_eq!(
        (first, last),
        (Some(12), Some(RECORDS as i64 + 9)),
        "the newest wait for the unfinished one"
    );
    reader.read(false, |record| found.push(record.result));
    assert_eq!((found.last(), reader.lost()), (Some(&-1), 13));
}

#[test]
fn a_record_that_another_wrote_into_is_skipped() {
    let ring = ring();
    let mut reader = ring.reader();
    ring.write(&record(1));
    ring.places[0].words[7].store(2, R);
    reader.read(false, |record| panic!("{record:?}"));
    assert_eq!(reader.lost(), 1);
}

#[test]
fn a_reader_beside_writers_never_sees_half_a_record() {
    let ring = &*ring();
    let mut reader = ring.reader();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..200_000).for_each(|number| ring.write(&record(number))));
        }
        let mut seen = 0;
        while seen + reader.lost() < 400_000 {
            reader.read(false, |record| {
                assert_eq!(record.charged, record.result.cast_unsigned());
                seen += 1;
            });
        }
        assert!(seen > 0, "all were lost");
    });
}

#[test]
fn it_is_written_only_while_it_is_read() {
    let ring = ring();
    assert!(!ring.is_read(Moment::FIRST));
    ring.read_until(Moment(10));
    ring.read_until(Moment(5));
    assert!(ring.is_read(Moment(9)) && !ring.is_read(Moment(10)));
}
