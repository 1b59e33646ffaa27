//! The system call that a thread sleeps in.

use std::fs;

/// The call that a thread sleeps in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Negative in a page fault, where it is in none.
    pub number: i64,
    /// Its registers, all of which the call need not use.
    pub arguments: [u64; 6],
}

impl Call {
    /// `NUMBER ARGUMENT... SP PC`, or fewer in none; `running` of one that does not sleep.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for (argument, word) in arguments.iter_mut().zip(words).take_while(|_| number >= 0) {
            *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, arguments })
    }
}

/// What thread `thread` of process `id` sleeps in, `/proc/PID/task/TID/syscall`; `None` if it runs, or is not
/// to be looked at. Waits while the process executes a program ([`discnice_sys::procfs::is_executing`]). proc_pid_syscall(5)
#[must_use]
pub fn call(id: u32, thread: u32) -> Option<Call> {
    Call::parse(&fs::read_to_string(format!("/proc/{id}/task/{thread}/syscall")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_with_their_arguments() {
        assert_eq!(Call::parse("running\n"), None);
        let fault = Call { number: -1, arguments: [0; 6] };
        assert_eq!(Call::parse("-1 0x7ffe 0x7f12\n"), Some(fault));
        let text = "17 0x3 0x7f00 0x1000 0x20 0x0 0xffffffffffffffff 0x7ffe 0x7f12\n";
        let arguments = [3, 0x7f00, 0x1000, 0x20, 0, u64::MAX];
        assert_eq!(Call::parse(text), Some(Call { number: 17, arguments }));
    }
}
