//! The fast form agrees with the full one, for all combinations of conditions that can occur.

use super::*;

/// What can hold a class, as bits of its word of limits.
const DISK: u32 = 1;
const NAMES: u32 = 1 << 1;
const NETWORK: u32 = 1 << 2;
const PREDICTING: u32 = 1 << 3;
const GIVES_WAY: u32 = 1 << 4;
const TRACED: u32 = 1 << 5;
const LIMITS: u32 = 6;

/// What a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    Pipe,
    Socket,
    File,
    PredictedFile,
}
const KINDS: [Kind; 5] = [Kind::Unknown, Kind::Pipe, Kind::Socket, Kind::File, Kind::PredictedFile];

/// Questions that are independent of each other, one bit each.
const FREE_BITS: u32 = 11;

/// One combination.
#[derive(Debug, Clone, Copy)]
struct Combination {
    limits: u32,
    kind: Kind,
    bits: u32,
}

impl Combination {
    fn bit(&self, number: u32) -> bool {
        self.bits >> number & 1 != 0
    }

    fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File | Kind::PredictedFile)
    }
}

impl Conditions for Combination {
    fn is_unlimited(&self) -> bool {
        self.limits == 0
    }
    fn is_free(&self) -> bool {
        self.limits & (DISK | PREDICTING | GIVES_WAY) == 0
    }
    fn is_limited(&self) -> bool {
        self.limits & (DISK | PREDICTING) != 0
    }
    fn is_held_on_disk_alone(&self) -> bool {
        self.limits == DISK
    }
    fn predicts(&self) -> bool {
        self.limits & PREDICTING != 0
    }
    fn limits_names(&self) -> bool {
        self.limits & NAMES != 0
    }
    fn minds_traffic(&self) -> bool {
        self.limits & NETWORK != 0
    }
    fn is_traced(&self) -> bool {
        self.limits & TRACED != 0
    }
    fn is_blank(&self) -> bool {
        self.kind == Kind::Unknown
    }
    fn is_other(&self) -> bool {
        matches!(self.kind, Kind::Pipe | Kind::Socket)
    }
    fn is_socket(&self) -> bool {
        self.kind == Kind::Socket
    }
    fn is_predicted(&self) -> bool {
        self.kind == Kind::PredictedFile
    }
    fn is_untouched(&self) -> bool {
        !self.is_file() || self.bit(0)
    }
    fn was_never_shaped(&self) -> bool {
        self.is_untouched() && self.bit(1)
    }
    fn rewrites(&self) -> bool {
        self.is_file() && self.bit(2)
    }
    fn is_known(&self) -> bool {
        self.kind == Kind::PredictedFile && self.bit(3)
    }
    fn passes_unprobed(&self) -> bool {
        self.kind == Kind::PredictedFile && !self.is_untouched() && self.bit(3)
    }
    fn is_plain(&self) -> bool {
        self.is_untouched() || self.bit(4)
    }
    fn is_calm(&self) -> bool {
        self.bit(5)
    }
    fn owes_for_faults(&self) -> bool {
        self.bit(6)
    }
    fn is_short(&self) -> bool {
        self.bit(7)
    }
    fn missed(&self) -> bool {
        self.bit(8)
    }
    fn finds_all(&self) -> bool {
        self.bit(9)
    }
    fn deletions_cover(&self) -> bool {
        self.bit(10)
    }
}

fn all() -> impl Iterator<Item = Combination> {
    (0..1 << LIMITS).flat_map(|limits| {
        KINDS.into_iter().flat_map(move |kind| {
            (0..1 << FREE_BITS).map(move |bits| Combination { limits, kind, bits })
        })
    })
}

/// Compares one fast form with the full one; returns how often it decided.
fn compare(
    fast: impl Fn(&Combination) -> Option<Why>,
    full: impl Fn(&Combination) -> Decision,
) -> usize {
    let decided = all().filter_map(|call| Some((call, fast(&call)?)));
    decided
        .inspect(|(call, why)| assert_eq!(full(call), Decision::Proceed(*why), "{call:?}"))
        .count()
}

#[test]
fn the_fast_form_agrees_with_the_full_one() {
    use fast::{held, unlimited};
    let decided = [
        compare(unlimited::transfer, read),
        compare(unlimited::transfer, write),
        compare(unlimited::metadata, metadata),
        compare(unlimited::metadata, operation),
        compare(held::transfer, read),
        compare(held::transfer, write),
        compare(held::write, write),
        compare(held::metadata, metadata),
        compare(held::metadata, operation),
    ];
    assert!(decided.iter().all(|count| *count > 1000), "{decided:?}");
}

#[test]
fn while_a_trace_runs_no_call_takes_the_fast_form() {
    let traced = || all().filter(Conditions::is_traced);
    assert!(traced().all(|call| fast::unlimited::transfer(&call).is_none()));
    assert!(traced().all(|call| fast::unlimited::metadata(&call).is_none()));
    assert!(traced().all(|call| fast::held::transfer(&call).is_none()));
    assert!(traced().all(|call| fast::held::write(&call).is_none()));
    assert!(traced().all(|call| fast::held::metadata(&call).is_none()));
}

#[test]
fn every_combination_goes_on_for_a_reason_or_waits() {
    for call in all() {
        for decision in [read(&call), write(&call), metadata(&call), operation(&call), start(&call)]
        {
            let named = matches!(decision, Decision::Proceed(why) if why != Why::Unexamined);
            assert!(named || decision == Decision::Wait, "{call:?}: {decision:?}");
        }
        let is_regulated = call.is_socket() && call.minds_traffic();
        assert!(!is_regulated || read(&call) == Decision::Wait, "{call:?}");
    }
}

#[test]
fn a_long_call_is_split_if_it_may_be() {
    assert_eq!(pieces(10, 4, || true), Decision::Split(4));
    assert_eq!(pieces(10, 4, || false), Decision::Wait);
    assert_eq!(pieces(4, 4, || unreachable!("it is short")), Decision::Wait);
}

#[test]
fn only_what_will_be_told_to_come_again_is_refused() {
    use discnice_units::Moment;
    let never = || unreachable!("not asked");
    assert_eq!(turn(Turn::Now, true, never), Decision::Proceed(Why::Turn));
    assert_eq!(turn(Turn::At(Moment(7)), false, never), Decision::Wait);
    assert_eq!(turn(Turn::At(Moment(7)), true, || true), Decision::WouldBlock);
    assert_eq!(turn(Turn::AskAgain(Moment(7)), true, || true), Decision::WouldBlock);
    assert_eq!(turn(Turn::AskAgain(Moment(7)), true, || false), Decision::Wait);
}
