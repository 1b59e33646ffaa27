//! The calls that are told to the supervisor, and what their registers say.
//!
//! They are those that can move file data, and the end of a thread, with which its account would be lost. What
//! opens, creates, deletes, truncates or flushes is not among them: its own traffic is small, or was charged when
//! the pages got dirty, and shows in the account at the next call. Nor is close(2): a signal interrupts a call that
//! waits to be received, and no program expects that of close(2). [`crate::closed`] finds what it leaves.

use discnice_sys::seccomp::{ARCHITECTURE, Call};

/// What a call does, as far as disk traffic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads from the first argument's descriptor into memory.
    Read,
    /// Writes to it from memory.
    Write,
    /// Copies between two descriptors inside the kernel.
    Copy,
    /// Reads a directory.
    Directory,
    /// Starts I/O of unknown size.
    Start,
    /// Ends the thread.
    End,
    /// Ends the process.
    Exit,
}

impl Kind {
    /// What a trace calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Directory => "directory",
            Self::Start => "start of I/O",
            Self::End => "end of thread",
            Self::Exit => "exit",
        }
    }
}

/// How much a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// This many bytes.
    Bytes(u64),
    /// What so many `struct iovec` at an address in the caller's memory say.
    Vector(u64, u64),
}

/// A call, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub kind: Kind,
    /// The descriptor that is read or written; a copy's source.
    pub fd: i32,
    /// A copy's target.
    pub to: i32,
    /// How much.
    pub amount: Amount,
    /// Offset, unless it is the descriptor's own.
    pub at: Option<u64>,
    /// Set if a copy reads at the source's own offset.
    pub in_order: bool,
}

/// Tells which registers hold what.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `(fd, buffer, count)`, and the offset if it is the fourth argument.
    Read {
        at: bool,
    },
    ReadVector {
        at: bool,
    },
    Write {
        at: bool,
    },
    WriteVector {
        at: bool,
    },
    /// `(from, offset pointer, to, offset pointer, count)`.
    Copy,
    /// `(to, from, offset pointer, count)`.
    Send,
    Directory,
    Start,
    End,
    Exit,
}

/// Number natively, number for 32-bit programs on x86-64 (arch/x86/entry/syscalls), shape.
const CALLS: [(i64, u32, Shape); 19] = [
    (libc::SYS_read, 3, Shape::Read { at: false }),
    (libc::SYS_pread64, 180, Shape::Read { at: true }),
    (libc::SYS_readv, 145, Shape::ReadVector { at: false }),
    (libc::SYS_preadv, 333, Shape::ReadVector { at: true }),
    (libc::SYS_preadv2, 378, Shape::ReadVector { at: true }),
    (libc::SYS_write, 4, Shape::Write { at: false }),
    (libc::SYS_pwrite64, 181, Shape::Write { at: true }),
    (libc::SYS_writev, 146, Shape::WriteVector { at: false }),
    (libc::SYS_pwritev, 334, Shape::WriteVector { at: true }),
    (libc::SYS_pwritev2, 379, Shape::WriteVector { at: true }),
    (libc::SYS_sendfile, 187, Shape::Send),
    (libc::SYS_copy_file_range, 377, Shape::Copy),
    (libc::SYS_splice, 313, Shape::Copy),
    (libc::SYS_getdents64, 220, Shape::Directory),
    (libc::SYS_readahead, 225, Shape::Start),
    (libc::SYS_io_submit, 248, Shape::Start),
    (libc::SYS_io_uring_enter, 426, Shape::Start),
    (libc::SYS_exit, 1, Shape::End),
    (libc::SYS_exit_group, 252, Shape::Exit),
];

/// Calls that only 32-bit programs have: `sendfile64`, `getdents`.
const COMPAT_ONLY: [(u32, Shape); 2] = [(239, Shape::Send), (141, Shape::Directory)];
/// The number of `io_uring_setup` for them.
pub const COMPAT_IO_URING_SETUP: u32 = 425;

/// Numbers of this machine's own calls.
pub fn native() -> impl Iterator<Item = u32> {
    CALLS.iter().map(|(number, _, _)| *number as u32)
}

/// Numbers of 32-bit programs' calls.
pub fn compat() -> impl Iterator<Item = u32> {
    let own = COMPAT_ONLY.iter().map(|(number, _)| *number);
    CALLS.iter().map(|(_, number, _)| *number).chain(own)
}

/// What a call asks for.
#[must_use]
pub fn decode(call: &Call) -> Request {
    if call.architecture == ARCHITECTURE {
        let known = CALLS.iter().find(|(number, _, _)| *number == i64::from(call.number));
        return shaped(known.map_or(Shape::Start, |(_, _, shape)| *shape), call.arguments);
    }
    let known = CALLS.iter().map(|(_, number, shape)| (*number, *shape)).chain(COMPAT_ONLY);
    let shape = known.into_iter().find(|(number, _)| *number == call.number as u32);
    match shape.map_or(Shape::Start, |(_, shape)| shape) {
        // Their vectors have other entries, which are not worth reading.
        Shape::ReadVector { .. } | Shape::WriteVector { .. } => {
            shaped(Shape::Start, call.arguments)
        }
        shape => {
            let [a, b, c, low, high, f] = call.arguments;
            // An offset takes two registers.
            let at = if matches!(shape, Shape::Read { at: true } | Shape::Write { at: true }) {
                high << 32 | low
            } else {
                low
            };
            shaped(shape, [a, b, c, at, high, f])
        }
    }
}

fn shaped(shape: Shape, [a, b, c, d, e, _]: [u64; 6]) -> Request {
    // The offset -1 of preadv2(2) and pwritev2(2) means the descriptor's own.
    let offset = |given: bool| (given && d != u64::MAX).then_some(d);
    let request = |kind, fd: u64, amount, at| Request {
        kind,
        fd: fd as i32,
        to: -1,
        amount,
        at,
        in_order: at.is_none(),
    };
    match shape {
        Shape::Read { at } => request(Kind::Read, a, Amount::Bytes(c), offset(at)),
        Shape::ReadVector { at } => request(Kind::Read, a, Amount::Vector(c, b), offset(at)),
        Shape::Write { at } => request(Kind::Write, a, Amount::Bytes(c), offset(at)),
        Shape::WriteVector { at } => request(Kind::Write, a, Amount::Vector(c, b), offset(at)),
        Shape::Copy => Request {
            to: c as i32,
            in_order: b == 0,
            ..request(Kind::Copy, a, Amount::Bytes(e), None)
        },
        Shape::Send => Request {
            to: a as i32,
            in_order: c == 0,
            ..request(Kind::Copy, b, Amount::Bytes(d), None)
        },
        Shape::Directory => request(Kind::Directory, a, Amount::Bytes(0), None),
        Shape::Start => request(Kind::Start, a, Amount::Bytes(0), None),
        Shape::End => request(Kind::End, u64::MAX, Amount::Bytes(0), None),
        Shape::Exit => request(Kind::Exit, u64::MAX, Amount::Bytes(0), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: i64, arguments: [u64; 6]) -> Call {
        Call { number: number as i32, architecture: ARCHITECTURE, instruction: 0, arguments }
    }

    #[test]
    fn offsets_and_amounts_are_found() {
        let read = decode(&call(libc::SYS_pread64, [3, 0x1000, 4096, 77, 0, 0]));
        assert_eq!((read.kind, read.fd, read.at), (Kind::Read, 3, Some(77)));
        assert_eq!(read.amount, Amount::Bytes(4096));
        let write = decode(&call(libc::SYS_pwritev2, [4, 0x1000, 2, u64::MAX, u64::MAX, 0]));
        assert_eq!((write.amount, write.at), (Amount::Vector(2, 0x1000), None));
        let send = decode(&call(libc::SYS_sendfile, [5, 6, 0, 100, 0, 0]));
        assert_eq!((send.fd, send.to, send.in_order), (6, 5, true));
        let splice = decode(&call(libc::SYS_splice, [5, 0x10, 6, 0, 100, 0]));
        assert_eq!((splice.fd, splice.to, splice.in_order), (5, 6, false));
        assert_eq!(splice.amount, Amount::Bytes(100));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn programs_of_32_bits_have_their_own_numbers() {
        let arguments = [3, 0x1000, 4096, 7, 1, 0];
        let call = Call { number: 180, architecture: 0x4000_0003, instruction: 0, arguments };
        assert_eq!(decode(&call).at, Some((1 << 32) + 7));
        let vector = Call { number: 145, ..call };
        assert_eq!(decode(&vector).kind, Kind::Start);
    }
}
