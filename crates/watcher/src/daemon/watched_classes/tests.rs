use super::*;
use crate::daemon::rules::Rulebook;

fn watches_nothing(board: &'static Board) -> WatchedClasses {
    let rules = Rulebook { place: || None, load: || unreachable!(), admit: |_| unreachable!() };
    let settings = DaemonSettings { addresses: |_| Ok(None), programs: |_| Ok(None), rules };
    WatchedClasses {
        board: Some(board),
        announced: None,
        kept: Vec::new(),
        sum: Sum::default(),
        taken: Vec::new(),
        census: Census::default(),
        pressure: Pressure::default(),
        helpers: Helpers::default(),
        observer: Observer::at(None),
        settings,
        advisers: Vec::new(),
        tenants: Vec::new(),
        awaited: Vec::new(),
        compare_at: Moment::FIRST,
    }
}

#[test]
fn what_is_announced_is_taken_even_if_nothing_is_watched() {
    let start = discnice_sys::memory::allocate(Board::SIZE).unwrap();
    // SAFETY: the memory is fresh, zeroed, of that size, and never freed.
    let board = unsafe { Board::create(start, Board::SIZE) }.unwrap();
    let mut classes = watches_nothing(board);
    board.announce(BlockId::of_segment(3));
    classes.step();
    assert!(board.take_arrivals().is_empty(), "it would be told of that again and again");
}
