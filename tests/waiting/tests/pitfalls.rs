//! What is known to go wrong with interposing system calls, as K23 (2025) and lazypoline (2024) list it for
//! interposers in general: for each pitfall, a program sees the same as without us, and what it reads is charged.
//!
//! We replace libc's functions by name, and four pointers in its streams' table; no instruction of a program or of
//! libc is changed, nothing lies at address 0, and no selector of Syscall User Dispatch is ours. So by construction
//! these cannot happen to us, and what can be seen of them is tested all the same:
//!
//! - instructions missed, or data taken for instructions, when code is searched for `syscall`
//!   ([`data_that_looks_like_a_system_call_stays_data`], [`code_made_at_run_time_is_charged`]);
//! - calls of a null pointer that run into a trampoline at address 0 ([`a_call_of_nothing_faults_where_it_did`]);
//! - code that is changed while another thread runs it, which has no counterpart here;
//! - the selector of each thread, and which code may change it: a program's own is tested
//!   ([`a_program_that_dispatches_its_own_calls_sees_none_of_ours`]);
//! - registers, vectors and the red zone, which a call instruction that replaces `syscall` may not change. Ours is a
//!   function, before which a compiler expects less to be kept ([`what_a_function_keeps_is_kept`]); calls that do
//!   not pass through libc are the kernel's ([`vectors_and_the_red_zone_are_kept`]).
//!
//! One that does apply and is not met: libc's smallest functions can be called with a stack that is not aligned as the
//! ABI wants it, and ours cannot (docs/limits.md).

use std::path::Path;
use std::time::{Duration, Instant};

use discnice_tests::bare::{Place, guest};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::{cold, product, skip};

/// Of the file that the guest reads.
const SIZE: u64 = 2 << 20;
/// In which what a process did that has ended is entered from outside.
const PATIENCE: Duration = Duration::from_secs(5);

fn data(folder: &Path) {
    cold::make(&folder.join("data"), SIZE as usize).expect("a file");
}

/// What a class is charged for the guest going this way; `None` without a compiler.
fn charged(way: &str) -> Option<u64> {
    let folder = product::folder();
    let program = Compiler::new(folder.path())?.compile("pitfalls.c");
    let class = Class::new("50M");
    let words = [program.to_str().expect("UTF-8"), way];
    let outcome = Place::default().run(&mut class.command(words), data);
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    let begun = Instant::now();
    while class.charged().0 < SIZE && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(class.charged().0)
}

/// Tests of one way each; those that are charged read all of the file.
macro_rules! pitfalls {
    ($($(#[doc = $doc:literal])+ $name:ident: $way:literal, $is_charged:literal;)+) => {
        $(
            $(#[doc = $doc])+
            #[test]
            fn $name() {
                let Some(bare) = guest("pitfalls.c", &[$way], data) else { skip!("no compiler") };
                assert_eq!((bare.status, bare.signal), (Some(0), None), "the guest: {bare:?}");
                assert!(!bare.output.is_empty(), "a silent guest shows nothing");
                if $is_charged {
                    let charged = charged($way).expect("there was a compiler");
                    assert!(charged >= SIZE, "only {charged} are charged");
                }
            }
        )+
    };
}

pitfalls! {
    /// Interposition lost at an exec with an empty environment.
    an_exec_without_environment_is_charged: "exec", true;
    /// Calls before the library's constructor has run.
    what_is_read_before_all_constructors_is_charged: "early", true;
    /// A program takes the variable out of its environment, and then all of it.
    children_without_the_variable_are_charged: "unset", true;
    /// A second libc in a namespace of its own (`dlmopen`).
    what_a_second_libc_reads_is_charged: "second-libc", true;
    /// syscall(2) by number.
    what_syscall_reads_is_charged: "syscall", true;
    /// Code that appears after any search for system calls, and is rewritten.
    code_made_at_run_time_is_charged: "run-time", true;
    /// Data between instructions, and libc's own code.
    data_that_looks_like_a_system_call_stays_data: "data", false;
    /// A signal handler that makes the same calls, in the middle of ours.
    handlers_within_our_hooks_do_their_work: "handler", true;
    /// `clone` with `CLONE_VM | CLONE_VFORK`: one thread-local storage for two processes.
    a_child_with_shared_memory_leaves_its_parent_whole: "clone", true;
    /// Registers that a function keeps, and how floating point rounds.
    what_a_function_keeps_is_kept: "registers", false;
    /// What the kernel keeps over a system call.
    vectors_and_the_red_zone_are_kept: "red-zone", false;
    /// Functions at address 0 and a little above.
    a_call_of_nothing_faults_where_it_did: "null", false;
    /// A signal stack with one page more than what the kernel needs.
    handlers_on_small_stacks_do_their_work: "small-stack", false;
    /// Threads that end: nothing of an interposer runs then.
    threads_that_have_ended_leave_nothing_behind: "threads", false;
    /// Syscall User Dispatch: calls from outside of libc are the program's own to answer.
    a_program_that_dispatches_its_own_calls_sees_none_of_ours: "dispatch", true;
}
