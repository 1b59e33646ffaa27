//! The filter: which calls are told to the supervisor.
//!
//! ```text
//! architecture: native, 32-bit (x86-64 only), or another, which is left alone
//! number:       none of ours      -> allowed; the kernel remembers that (Linux 5.11) and does not
//!                                    run the filter for it again, as long as it looks at nothing else
//!               one of ours       -> from the gate page: allowed; else told to the supervisor
//!               posix_fadvise(2)  -> told if it starts reading
//!               io_uring_setup(2) -> does not exist, if nothing may escape
//! ```

use discnice_sys::gate;
use discnice_sys::seccomp::{ARCHITECTURE, Instruction};

use crate::calls;
use crate::search::{self, Segment};

/// Places in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const INSTRUCTION_LOW: u32 = 8;
const INSTRUCTION_HIGH: u32 = 12;
const FOURTH_ARGUMENT: u32 = 16 + 3 * 8;

/// Programs of 32 bits on x86-64, `AUDIT_ARCH_I386`.
const I386: u32 = 0x4000_0003;
/// Marks calls of the x32 ABI, which have numbers of their own (asm/unistd.h, `__X32_SYSCALL_BIT`).
const X32: u32 = 0x4000_0000;

/// Calls that programs make most: they take the fewest instructions.
const FREQUENT: [i64; 4] = [libc::SYS_read, libc::SYS_write, libc::SYS_pread64, libc::SYS_pwrite64];

/// Programs that are below the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One program that our library cannot enter; it can enter the dynamic ones that this program
    /// starts, and then regulates them itself.
    Gated,
    /// All, and nothing may escape: no gate, no `io_uring`.
    All,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Allowed,
    /// There is no such call.
    Missing,
    /// The call is allowed from the gate page; else the supervisor is told.
    Told,
    /// A posix_fadvise(2): what it starts is told.
    Advice,
}

/// Instructions of classic BPF that are needed here (linux/filter.h).
const fn load(at: u32) -> Instruction {
    Instruction { code: 0x20, then: 0, otherwise: 0, value: at }
}

const fn if_equal(value: u32, then: usize, otherwise: usize) -> Instruction {
    Instruction { code: 0x15, then: then as u8, otherwise: otherwise as u8, value }
}

/// Answers that a call may be made.
pub(crate) const ALLOW: Instruction = answer(libc::SECCOMP_RET_ALLOW);

const fn answer(action: u32) -> Instruction {
    Instruction { code: 0x06, then: 0, otherwise: 0, value: action }
}

/// The program.
#[must_use]
pub fn program(reach: Reach) -> Vec<Instruction> {
    let native = section(reach, &native(reach));
    let mut program = vec![load(ARCH), if_equal(ARCHITECTURE, 0, native.len())];
    program.extend(native);
    if cfg!(target_arch = "x86_64") {
        program.extend([if_equal(I386, 1, 0), ALLOW]);
        program.extend(section(reach, &compat(reach)));
    } else {
        program.push(ALLOW);
    }
    program
}

fn native(reach: Reach) -> Vec<Segment<Fate>> {
    let mut fates: Vec<(u32, Fate)> = calls::native().map(|number| (number, Fate::Told)).collect();
    fates.push((libc::SYS_fadvise64 as u32, Fate::Advice));
    if reach == Reach::All {
        fates.push((libc::SYS_io_uring_setup as u32, Fate::Missing));
    }
    let mut segments = search::segments(fates, Fate::Allowed, |number| {
        if FREQUENT.contains(&number.into()) { 64 } else { 1 }
    });
    if cfg!(target_arch = "x86_64") && reach == Reach::All {
        segments.push(Segment { begin: X32, fate: Fate::Missing, weight: 0 });
    }
    segments
}

fn compat(reach: Reach) -> Vec<Segment<Fate>> {
    let mut fates: Vec<(u32, Fate)> = calls::compat().map(|number| (number, Fate::Told)).collect();
    if reach == Reach::All {
        fates.push((calls::COMPAT_IO_URING_SETUP, Fate::Missing));
    }
    search::segments(fates, Fate::Allowed, |_| 1)
}

/// What is done with the calls of one architecture.
fn section(reach: Reach, segments: &[Segment<Fate>]) -> Vec<Instruction> {
    let (told, advice) = (tell(reach), advise());
    let mut program = vec![load(NUMBER)];
    program.extend(search::compare(segments, |fate| match fate {
        Fate::Allowed => 0,
        Fate::Missing => 1,
        Fate::Told => 2,
        Fate::Advice => 2 + told.len(),
    }));
    program.extend([ALLOW, answer(refusal(libc::ENOSYS))]);
    program.extend(told);
    program.extend(advice);
    program
}

const fn refusal(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Tells the supervisor, unless the call comes from the gate.
fn tell(reach: Reach) -> Vec<Instruction> {
    if reach == Reach::All {
        return vec![answer(libc::SECCOMP_RET_USER_NOTIF)];
    }
    let (low, high) = (gate::BEHIND as u32, (gate::BEHIND as u64 >> 32) as u32);
    vec![
        load(INSTRUCTION_LOW),
        if_equal(low, 0, 2),
        load(INSTRUCTION_HIGH),
        if_equal(high, 1, 0),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        ALLOW,
    ]
}

/// Answers whether there is a filter, and tells what starts reading.
const fn advise() -> [Instruction; 6] {
    [
        load(FOURTH_ARGUMENT),
        if_equal(gate::QUESTION as u32, 1, 0),
        if_equal(libc::POSIX_FADV_WILLNEED as u32, 1, 2),
        answer(refusal(gate::ANSWER)),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        ALLOW,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::seccomp::Call;

    /// What the kernel does with a call, and after how many instructions.
    fn run(program: &[Instruction], call: &Call) -> (u32, usize) {
        let word = |at: u32| match at {
            NUMBER => call.number as u32,
            ARCH => call.architecture,
            INSTRUCTION_LOW => call.instruction as u32,
            INSTRUCTION_HIGH => (call.instruction >> 32) as u32,
            FOURTH_ARGUMENT => call.arguments[3] as u32,
            _ => panic!("{at} is not looked at"),
        };
        let (mut known, mut next, mut count) = (0, 0, 0);
        loop {
            let Instruction { code, then, otherwise, value } = program[next];
            (next, count) = (next + 1, count + 1);
            let holds = match code {
                0x20 => {
                    known = word(value);
                    continue;
                }
                0x15 => known == value,
                0x35 => known >= value,
                0x06 => return (value, count),
                _ => panic!("instruction {code:#x}"),
            };
            next += usize::from(if holds { then } else { otherwise });
        }
    }

    /// Returns what the filter should answer by the rules at the head of this file.
    fn wanted(reach: Reach, call: &Call) -> u32 {
        let number = call.number as u32;
        let (native, all) = (call.architecture == ARCHITECTURE, reach == Reach::All);
        let compat = cfg!(target_arch = "x86_64") && call.architecture == I386;
        let setup = native && number == libc::SYS_io_uring_setup as u32
            || compat && number == calls::COMPAT_IO_URING_SETUP;
        let x32 = native && cfg!(target_arch = "x86_64") && number >= X32;
        if all && (setup || x32) {
            return refusal(libc::ENOSYS);
        }
        let advice = native && number == libc::SYS_fadvise64 as u32;
        if advice && call.arguments[3] as i32 == gate::QUESTION {
            return refusal(gate::ANSWER);
        }
        let told = native && calls::native().any(|one| one == number)
            || compat && calls::compat().any(|one| one == number);
        let gated = !all && call.instruction == gate::BEHIND as u64;
        let starts = advice && call.arguments[3] as i32 == libc::POSIX_FADV_WILLNEED;
        if told && !gated || starts {
            libc::SECCOMP_RET_USER_NOTIF
        } else {
            libc::SECCOMP_RET_ALLOW
        }
    }

    #[test]
    fn every_number_is_treated_as_is_said() {
        let behind = gate::BEHIND as u64;
        let places = [0x7f00_1234_5678, behind, behind + 1, behind + (1 << 32)];
        let advices = [0, libc::POSIX_FADV_WILLNEED, gate::QUESTION].map(|one| one as u64);
        let numbers = (0..=600).chain([-1, i32::MAX, X32 as i32, X32 as i32 + 1]);
        for reach in [Reach::Gated, Reach::All] {
            let program = program(reach);
            for number in numbers.clone() {
                for architecture in [ARCHITECTURE, I386, 0xc000_00b7, 0xc000_003e, 0] {
                    for (instruction, advice) in
                        places.iter().flat_map(|place| advices.map(|advice| (*place, advice)))
                    {
                        let arguments = [0, 0, 0, advice, 0, 0];
                        let call = Call { number, architecture, instruction, arguments };
                        assert_eq!(run(&program, &call).0, wanted(reach, &call), "{call:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn frequent_calls_take_few_instructions() {
        let program = program(Reach::Gated);
        for number in calls::native() {
            let number = number as i32;
            let instruction = gate::BEHIND as u64;
            let call = Call { number, architecture: ARCHITECTURE, instruction, ..Call::default() };
            let (_, count) = run(&program, &call);
            let most = if FREQUENT.contains(&number.into()) { 10 } else { 16 };
            assert!(count <= most, "{number}: {count}");
        }
    }
}
