//! What the process that writes back is told, and what it tells, through a socket that keeps messages whole.

use crate::writeback::portions::Pace;

const NUMBERS: usize = 5;
/// Length of a message in either direction, in bytes.
pub(crate) const LENGTH: usize = NUMBERS * size_of::<u64>();

/// Stands for the daemons in an order: no process has this number.
pub(crate) const DAEMONS: u32 = 0;
/// In place of the bytes that may be left: the process does not wait.
const UNAWAITED: u64 = u64::MAX;
/// In place of a class's nonce, which is never zero.
const NO_CLASS: u64 = 0;

/// To write back what a process has open for writing, or the user's [`DAEMONS`] have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) id: u32,
    pub(crate) pace: Pace,
    /// The process stands until no more than so many bytes are on their way, and that is to be told.
    pub(crate) left: Option<u64>,
}

/// How many files members have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) files: u64,
    /// Of these, those that were tiny when they were closed.
    pub(crate) tinies: u64,
}

/// What is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// Files that members of a class, by its nonce, made on a file system, by its device number.
    Made { class: u64, device: u64, count: Count },
    /// A process need not wait any more.
    Written(u32),
}

impl Order {
    pub(crate) fn encode(self) -> [u8; LENGTH] {
        let Pace { class, portion, period } = self.pace;
        encode([self.id.into(), class, portion, period.0, self.left.unwrap_or(UNAWAITED)])
    }

    pub(crate) fn decode(message: [u8; LENGTH]) -> Option<Self> {
        let [id, class, portion, period, left] = decode(message);
        let pace = Pace { class, portion, period: discnice_units::Nanos(period) };
        Some(Self { id: id.try_into().ok()?, pace, left: (left != UNAWAITED).then_some(left) })
    }
}

impl News {
    pub(crate) fn encode(self) -> [u8; LENGTH] {
        match self {
            Self::Made { class, device, count } => {
                encode([class, device, count.files, count.tinies, 0])
            }
            Self::Written(id) => encode([NO_CLASS, id.into(), 0, 0, 0]),
        }
    }

    pub(crate) fn decode(message: [u8; LENGTH]) -> Option<Self> {
        Some(match decode(message) {
            [NO_CLASS, id, ..] => Self::Written(id.try_into().ok()?),
            [class, device, files, tinies, _] => {
                Self::Made { class, device, count: Count { files, tinies } }
            }
        })
    }
}

fn encode(numbers: [u64; NUMBERS]) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    let (places, _) = message.as_chunks_mut();
    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_ne_bytes());
    message
}

fn decode(message: [u8; LENGTH]) -> [u64; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    let (places, _) = message.as_chunks();
    numbers.iter_mut().zip(places).for_each(|(number, place)| *number = u64::from_ne_bytes(*place));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_units::Nanos;

    #[test]
    fn what_is_told_arrives() {
        let pace = Pace { class: 3, portion: 1 << 20, period: Nanos::SECOND };
        for left in [None, Some(0), Some(1 << 21)] {
            let order = Order { id: 5, pace, left };
            assert_eq!(Order::decode(order.encode()), Some(order));
        }
        let count = Count { files: 7, tinies: 2 };
        for news in [News::Made { class: 3, device: 9, count }, News::Written(5)] {
            assert_eq!(News::decode(news.encode()), Some(news));
        }
    }
}
