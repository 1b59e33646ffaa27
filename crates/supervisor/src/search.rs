//! Which of some segments of numbers one is in, in few comparisons.

use discnice_sys::seccomp::Instruction;

/// Numbers that are treated alike, up to where the next segment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment<F> {
    /// The first of them.
    pub(crate) begin: u32,
    /// What becomes of them.
    pub(crate) fate: F,
    /// How often they are looked for.
    pub(crate) weight: u32,
}

/// Returns segments for all numbers: those with a given fate, and the rest with the fate `other`,
/// which are never looked for.
pub(crate) fn segments<F: Copy + PartialEq>(
    mut fates: Vec<(u32, F)>,
    other: F,
    weight: impl Fn(u32) -> u32,
) -> Vec<Segment<F>> {
    fates.sort_unstable_by_key(|(number, _)| *number);
    let mut segments = vec![Segment { begin: 0, fate: other, weight: 0 }];
    for (number, fate) in fates {
        let weight = weight(number);
        match segments.last_mut() {
            // Nothing lies between.
            Some(last) if last.begin == number => *last = Segment { begin: number, fate, weight },
            _ => segments.push(Segment { begin: number, fate, weight }),
        }
        segments.push(Segment { begin: number + 1, fate: other, weight: 0 });
    }
    segments.dedup_by(|next, last| {
        let same = next.fate == last.fate;
        last.weight += if same { next.weight } else { 0 };
        same
    });
    segments
}

/// Comparisons that lead to the instruction at `place` of a segment's fate, counted from behind them.
pub(crate) fn compare<F: Copy>(
    segments: &[Segment<F>],
    place: impl Fn(F) -> usize,
) -> Vec<Instruction> {
    let before = running_sums(segments);
    let mut comparisons = Vec::new();
    let mut todo = vec![(0, segments.len())];
    while let Some((from, to)) = todo.pop() {
        if to - from < 2 {
            continue;
        }
        let split = split(&before, from, to);
        // Behind this one come those of the lower half, then those of the upper one.
        let (behind, lower) = (segments.len() - 1 - comparisons.len() - 1, split - from - 1);
        let jump = |half: &[Segment<F>], further: usize| match half {
            [one] => behind + place(one.fate),
            _ => further,
        };
        let then = jump(&segments[split..to], lower) as u8;
        let otherwise = jump(&segments[from..split], 0) as u8;
        // BPF_JGE of linux/filter.h.
        comparisons.push(Instruction { code: 0x35, then, otherwise, value: segments[split].begin });
        todo.extend([(split, to), (from, split)]);
    }
    comparisons
}

/// How often all segments before each are looked for, and behind the last all.
fn running_sums<F>(segments: &[Segment<F>]) -> Vec<u32> {
    let mut before = Vec::with_capacity(segments.len() + 1);
    before.push(0);
    before.extend(segments.iter().scan(0, |sum, segment| {
        *sum += segment.weight;
        Some(*sum)
    }));
    before
}

/// Finds where to split the segments from one to another so that both halves are looked for about
/// as often: then frequent ones take few comparisons. `before` has, for each segment, how often
/// those before it are looked for.
fn split(before: &[u32], from: usize, to: usize) -> usize {
    let whole = before[from] + before[to];
    let upper = from + 1 + before[from + 1..to - 1].partition_point(|sum| 2 * sum < whole);
    let distance = |place: usize| (2 * before[place]).abs_diff(whole);
    if upper > from + 1 && distance(upper - 1) <= distance(upper) { upper - 1 } else { upper }
}
