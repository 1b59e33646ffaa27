//! Below a filter of ours (seccomp): calls through the gate instead of libc.
//!
//! A dynamic program that a supervised one starts inherits the filter, and regulates itself. Its
//! calls must then leave from the gate ([`discnice_sys::gate`]), or each would be told to the
//! supervisor as well. So the functions behind our hooks are replaced: by the bare system call and
//! what libc's function adds to it, which is errno and being a cancellation point, pthreads(7).
//! A call that can block indefinitely must be cancellable meanwhile, which only libc's own function
//! is; in a program with one thread no cancellation can come, and disk I/O does not block like
//! that.

use core::ffi::{CStr, c_char, c_long, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use discnice_sys::{Syscall, gate};

use crate::descriptors;
use crate::real::{Real, find, set_errno};

type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;

/// A function that goes through the gate, and libc's, which it replaces.
struct Gated {
    names: [&'static CStr; 2],
    ours: Function,
    libc: AtomicPtr<c_void>,
}

impl Gated {
    const fn new(names: [&'static CStr; 2], ours: Function) -> Self {
        Self { names, ours, libc: AtomicPtr::new(ptr::null_mut()) }
    }
}

static TABLE: [Gated; 13] = [
    Gated::new([c"read", c""], pass::<{ libc::SYS_read }, 0>),
    Gated::new([c"pread", c"pread64"], pass::<{ libc::SYS_pread64 }, 1>),
    Gated::new([c"readv", c""], pass::<{ libc::SYS_readv }, 2>),
    Gated::new([c"preadv", c"preadv64"], pass::<{ libc::SYS_preadv }, 3>),
    Gated::new([c"preadv2", c"preadv64v2"], pass::<{ libc::SYS_preadv2 }, 4>),
    Gated::new([c"write", c""], pass::<{ libc::SYS_write }, 5>),
    Gated::new([c"pwrite", c"pwrite64"], pass::<{ libc::SYS_pwrite64 }, 6>),
    Gated::new([c"writev", c""], pass::<{ libc::SYS_writev }, 7>),
    Gated::new([c"pwritev", c"pwritev64"], pass::<{ libc::SYS_pwritev }, 8>),
    Gated::new([c"pwritev2", c"pwritev64v2"], pass::<{ libc::SYS_pwritev2 }, 9>),
    Gated::new([c"sendfile", c"sendfile64"], pass::<{ libc::SYS_sendfile }, 10>),
    Gated::new([c"copy_file_range", c""], pass::<{ libc::SYS_copy_file_range }, 11>),
    Gated::new([c"splice", c""], pass::<{ libc::SYS_splice }, 12>),
];

/// libc's variable that says whether the program has one thread, and its function that ends a
/// thread which was cancelled.
static SINGLE: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static TEST_CANCEL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Opens the gate, if there is such a filter, and leads our hooks through it.
pub fn enter() {
    let (single, test) = (find(c"__libc_single_threaded"), find(c"pthread_testcancel"));
    if !gate::is_needed() || single.is_null() || test.is_null() {
        return;
    }
    gate::open();
    if gate::is_open() {
        SINGLE.store(single.cast(), Ordering::Relaxed);
        TEST_CANCEL.store(test, Ordering::Relaxed);
        crate::real::for_each(redirect);
    }
}

/// What libc's streams read by, if calls go through the gate.
pub fn read(fd: i32, buffer: *mut c_void, count: usize) -> Option<isize> {
    // SAFETY: libc's own arguments.
    let call =
        || unsafe { pass::<{ libc::SYS_read }, 0>(fd as usize, buffer as usize, count, 0, 0, 0) };
    gate::is_open().then(call)
}

fn redirect(real: &Real) {
    let known = TABLE.iter().find(|gated| gated.names.contains(&real.name()));
    if let Some(gated) = known.filter(|_| real.exists()) {
        gated.libc.store(real.get(), Ordering::Relaxed);
        real.replace(gated.ours as *mut c_void);
    }
}

/// The system call of this number, with the arguments of libc's function in the `AT`th place of
/// the table. Those that the function does not have are whatever the registers held, and ignored.
unsafe extern "C" fn pass<const NUMBER: c_long, const AT: usize>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    if may_wait(NUMBER, a as i32, c as i32) {
        let libc =
            TABLE.get(AT).map_or(ptr::null_mut(), |gated| gated.libc.load(Ordering::Relaxed));
        // SAFETY: the function of this name, which takes the first of these arguments.
        return unsafe { transmute::<*mut c_void, Function>(libc)(a, b, c, d, e, f) };
    }
    let test = TEST_CANCEL.load(Ordering::Relaxed);
    // SAFETY: libc's function has no argument and no result.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn()>(test)() };
    // The offset of these two takes two of the kernel's arguments, of which 64-bit machines use
    // the first.
    let arguments = match NUMBER {
        libc::SYS_preadv2 | libc::SYS_pwritev2 => [a, b, c, d, 0, e],
        _ => [a, b, c, d, e, f],
    };
    // SAFETY: the program's own arguments.
    match unsafe { gate::pass(Syscall(NUMBER, arguments)) } {
        Ok(value) => value as isize,
        Err(errno) => {
            set_errno(errno.0);
            -1
        }
    }
}

/// Returns true if the call may block indefinitely in a thread that another thread may cancel.
fn may_wait(number: c_long, first: i32, third: i32) -> bool {
    // SAFETY: libc's variable lives as long as the program.
    let single = unsafe { SINGLE.load(Ordering::Relaxed).read_volatile() } != 0;
    let is_disk = |fd| descriptors::get(fd).is_some_and(|file| file.is_disk());
    !single
        && match number {
            libc::SYS_sendfile => false,
            libc::SYS_splice => true,
            libc::SYS_copy_file_range => !is_disk(first) || !is_disk(third),
            _ => !is_disk(first),
        }
}
