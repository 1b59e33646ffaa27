//! What our interpreter says of a filter is what the kernel does below it.
#![allow(unsafe_code, reason = "filters are installed in forked children")]

use std::ptr;

use discnice_interpose::filter::{Instruction, Program, allows, judge, judge_all, spares};
use discnice_interpose::needs::Need;
use proptest::prelude::*;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const TRAP: u32 = libc::SECCOMP_RET_TRAP;
const ERRNO: u32 = libc::SECCOMP_RET_ERRNO;
const REFUSED: u32 = ERRNO | libc::EACCES as u32;
/// Calls that no kernel has: allowed, they fail with ENOSYS.
const UNKNOWN: u32 = 900;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The kernel makes it.
    Made,
    /// It returns this error number, or zero.
    Returned(u32),
    /// SIGSYS comes.
    Killed,
    /// The kernel accepts no such filter.
    NoFilter,
}

impl Fate {
    fn of_error(error: u32) -> Self {
        if error == libc::ENOSYS as u32 { Self::Made } else { Self::Returned(error) }
    }
}

/// What our interpreter expects.
fn expected(filter: &[Instruction], number: u32) -> Fate {
    match judge(filter, number) {
        None => Fate::Killed,
        Some(answer) => match answer & libc::SECCOMP_RET_ACTION_FULL {
            libc::SECCOMP_RET_ALLOW | libc::SECCOMP_RET_LOG => Fate::Made,
            libc::SECCOMP_RET_ERRNO => Fate::of_error((answer & 0xffff).min(4095)),
            _ => Fate::Killed,
        },
    }
}

/// Makes the call without arguments in a child below the filter.
fn seen(filter: &mut [Instruction], number: u32) -> Fate {
    let program = Program { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: fresh memory that both processes share. The child makes system calls only, and ends without returning.
    let (answer, status) = unsafe {
        let shared = libc::mmap(ptr::null_mut(), 4096, protection, flags, -1, 0);
        assert_ne!(shared, libc::MAP_FAILED);
        let answer = shared.cast::<[i64; 2]>();
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let (set, flags) = (libc::SECCOMP_SET_MODE_FILTER as usize, 0usize);
            (*answer)[0] = 1 + libc::syscall(libc::SYS_seccomp, set, flags, &raw const program);
            let result =
                libc::syscall(number.into(), 0usize, 0usize, 0usize, 0usize, 0usize, 0usize);
            (*answer)[1] = 1 + if result < 0 { (*libc::__errno_location()).into() } else { 0 };
            loop {
                libc::syscall(libc::SYS_exit_group, 0);
                // Where that is not allowed.
                ptr::null_mut::<u8>().write_volatile(0);
            }
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        let answer = answer.read();
        libc::munmap(shared, 4096);
        (answer, status)
    };
    let [installed, returned] = answer;
    if installed == 0 {
        return Fate::NoFilter;
    }
    if returned == 0 {
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS, "{status:x}");
        return Fate::Killed;
    }
    Fate::of_error(returned as u32 - 1)
}

const fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

const fn load(offset: u32) -> Instruction {
    plain(0x20, offset)
}

const fn ret(answer: u32) -> Instruction {
    plain(0x06, answer)
}

fn agrees(mut filter: Vec<Instruction>, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        let kernel = seen(&mut filter, number);
        assert_eq!(expected(&filter, number), kernel, "call {number} below {filter:?}");
    }
}

/// As libseccomp makes them: architecture, no calls of x32, a list, a default.
#[test]
fn a_list_as_libseccomp_makes_it() {
    let filter = vec![
        load(4),
        jump(0x15, ARCHITECTURE, 0, 6),
        load(0),
        jump(0x35, 0x4000_0000, 0, 1),
        jump(0x15, 0xffff_ffff, 0, 3),
        jump(0x15, UNKNOWN, 3, 0),
        jump(0x15, UNKNOWN + 1, 2, 0),
        jump(0x15, UNKNOWN + 2, 2, 3),
        ret(KILL),
        ret(ALLOW),
        ret(TRAP),
        ret(REFUSED),
    ];
    agrees(filter, [UNKNOWN, UNKNOWN + 1, UNKNOWN + 2, UNKNOWN + 3, 0x4000_0000 + UNKNOWN]);
}

/// As Chromium makes them: a search by halves, then the two halves of an argument, and a trap.
#[test]
fn a_tree_as_chromium_makes_it() {
    let filter = vec![
        load(4),
        jump(0x15, ARCHITECTURE, 1, 0),
        ret(TRAP),
        load(0),
        jump(0x45, 0x4000_0000, 0, 1),
        ret(TRAP),
        jump(0x35, UNKNOWN + 8, 6, 0),
        jump(0x25, UNKNOWN + 3, 0, 4),
        // The first argument is zero, upper half and lower.
        load(20),
        jump(0x15, 0, 0, 5),
        load(16),
        jump(0x15, 0, 4, 3),
        ret(REFUSED),
        jump(0x35, UNKNOWN + 12, 1, 0),
        ret(ERRNO | 77),
        ret(TRAP),
        ret(ALLOW),
    ];
    agrees(filter, UNKNOWN..UNKNOWN + 14);
}

/// Each instruction that `seccomp_check_filter` lets pass, with a value and with X.
#[test]
fn each_instruction_does_what_the_kernel_does() {
    let returned = [plain(0x54, 0xfff), plain(0x44, ERRNO), plain(0x16, 0)];
    for operation in [0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0xa4] {
        for operand in [1, 3, 31, 32, 33, 0xffff_ffff, 0] {
            let with_value = [plain(0x00, 0x00ab_cdef), plain(operation, operand)];
            let with_x = [plain(0x01, operand), plain(0x00, 0x00ab_cdef), plain(operation | 8, 0)];
            for start in [&with_value[..], &with_x[..]] {
                let mut filter = [start, &returned].concat();
                let kernel = seen(&mut filter, UNKNOWN);
                if kernel != Fate::NoFilter {
                    assert_eq!(
                        expected(&filter, UNKNOWN),
                        kernel,
                        "{operation:x} {operand}, {start:?}"
                    );
                }
            }
        }
    }
    for start in [
        vec![plain(0x00, 5), plain(0x84, 0)],
        vec![plain(0x80, 0)],
        vec![plain(0x81, 0), plain(0x87, 0)],
        vec![plain(0x00, 9), plain(0x07, 0), plain(0x00, 1), plain(0x0c, 0)],
        vec![plain(0x00, 9), plain(0x02, 15), plain(0x00, 1), plain(0x60, 15)],
        vec![plain(0x01, 8), plain(0x03, 3), plain(0x61, 3), plain(0x87, 0)],
        vec![plain(0x00, 7), plain(0x05, 1), plain(0x00, 8), plain(0x04, 1)],
        vec![load(0)],
        vec![load(60)],
    ] {
        agrees([&start[..], &returned].concat(), [UNKNOWN]);
    }
}

/// What the kernel does not accept as a filter has no answer, or none that would let a call pass by reading past its end.
#[test]
fn what_is_no_filter_has_no_answer() {
    for filter in [
        vec![],
        vec![plain(0x00, 1)],
        vec![jump(0x15, UNKNOWN, 200, 200), ret(ALLOW)],
        vec![plain(0x05, u32::MAX), ret(ALLOW)],
        vec![plain(0x02, 16), ret(ALLOW)],
        vec![plain(0x60, 16), ret(ALLOW)],
        vec![plain(0x34, 0), ret(ALLOW)],
        vec![plain(0x64, 32), ret(ALLOW)],
        vec![plain(0x94, 3), ret(ALLOW)],
        vec![plain(0x28, 0), ret(ALLOW)],
        vec![plain(0x8c, 0), ret(ALLOW)],
        vec![plain(0x0d, 0), ret(ALLOW)],
        vec![plain(0xffff, 0), ret(ALLOW)],
    ] {
        let mut filter = filter;
        assert_eq!(seen(&mut filter, UNKNOWN), Fate::NoFilter, "{filter:?}");
        assert_eq!(judge(&filter, UNKNOWN), None, "{filter:?}");
    }
}

/// A word of the call that is the same in a child: not the instruction pointer.
fn words() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(4), (4u32..16).prop_map(|word| 4 * word)]
}

/// An instruction that is not the last; a jump stays within the next three.
fn instructions() -> impl Strategy<Value = Instruction> {
    let value = prop_oneof![0u32..40, any::<u32>(), Just(UNKNOWN)];
    let operation = prop::sample::select(vec![
        0x04, 0x14, 0x24, 0x44, 0x54, 0xa4, 0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c, 0x6c, 0x7c, 0xac,
        0x84, 0x00, 0x01,
    ]);
    let test = prop::sample::select(vec![0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d]);
    prop_oneof![
        3 => (operation, value.clone()).prop_map(|(code, k)| plain(code, k)),
        1 => (prop::sample::select(vec![0x64, 0x74, 0x34]), 1u32..32).prop_map(|(code, k)| plain(code, k)),
        1 => words().prop_map(load),
        1 => (prop::sample::select(vec![0x60, 0x61, 0x02, 0x03]), 0u32..16)
            .prop_map(|(code, k)| plain(code, k)),
        1 => prop::sample::select(vec![0x07, 0x87, 0x80, 0x81]).prop_map(|code| plain(code, 0)),
        1 => (0u32..3).prop_map(|k| plain(0x05, k)),
        2 => (test, value, 0u8..3, 0u8..3).prop_map(|(code, k, jt, jf)| jump(code, k, jt, jf)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_filter_is_judged_as_the_kernel_does(middle in prop::collection::vec(instructions(), 0..40)) {
        // The kernel wants each slot of memory written before it is read; three returns for the last jumps.
        let written = (0..16).map(|slot| plain(0x02, slot));
        let ends = [plain(0x54, 0xfff), plain(0x44, ERRNO), plain(0x16, 0), ret(ALLOW)];
        let mut filter: Vec<_> = [plain(0x00, 3)].into_iter().chain(written).chain(middle).chain(ends).collect();
        let kernel = seen(&mut filter, UNKNOWN);
        prop_assert_ne!(kernel, Fate::NoFilter);
        // What is left of A when a jump has passed the mask above may be any action.
        let answer = judge(&filter, UNKNOWN).map(|answer| answer & libc::SECCOMP_RET_ACTION_FULL);
        let is_told_apart = !matches!(answer, Some(libc::SECCOMP_RET_TRACE | libc::SECCOMP_RET_USER_NOTIF));
        prop_assume!(is_told_apart);
        prop_assert_eq!(expected(&filter, UNKNOWN), kernel);
    }
}

/// What a filter refuses costs what the call is needed for, and no more.
#[test]
fn a_refused_call_costs_what_it_is_needed_for() {
    let [futex, prctl, option] =
        [libc::SYS_futex, libc::SYS_prctl, libc::SYS_getsockopt].map(|number| number as u16);
    let calls = [futex, prctl, option, futex];
    for (refused, answer, spared) in [
        (futex, REFUSED, [false, true, true]),
        (prctl, REFUSED, [true, true, true]),
        (prctl, KILL, [true, false, true]),
        (option, REFUSED, [true, true, false]),
        (0, KILL, [true, true, true]),
    ] {
        let number = refused.into();
        let mut filter = [load(0), jump(0x15, number, 0, 1), ret(answer), ret(ALLOW)];
        let program = Program { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: a filter in memory of this test.
        let judged = |need, accepts: fn(u32) -> bool| unsafe {
            judge_all(&raw const program, &calls, need, accepts)
        };
        let found = [
            judged(Need::Always, allows),
            judged(Need::IfPossible, spares),
            judged(Need::ForTraffic, allows),
        ];
        assert_eq!(found, spared, "{refused} answered by {answer:x}");
    }
}
