//! syscall(2): programs that call the kernel by number.

use core::ffi::{c_int, c_long, c_void};

use discnice_regulator::Flow;

use crate::calls::{self, VECTOR};
use crate::hooks::definition::hooks;
use crate::hooks::net::{is_pacing, receive_many, send_many};
use crate::hooks::read::{offset, read_with_flags};
use crate::hooks::write::write_with_flags;
use crate::hooks::{advice, copy, exec, memory, numbers};
use crate::loading::Target;
use crate::net::pacing;
use crate::net::transfer::{Call, transfer};
use crate::{confinement, files};

/// A call on a socket: of sendto(2) and recvfrom(2) the third argument is the size and the fourth
/// are the flags, of sendmsg(2) and recvmsg(2) the third are the flags.
const fn numbered(flow: Flow, number: c_long, [fd, third, fourth]: [usize; 3]) -> Call {
    let has_size = matches!(number, libc::SYS_sendto | libc::SYS_recvfrom);
    let (count, flags) = if has_size { (third, fourth) } else { (VECTOR, third) };
    Call { fd: fd as i32, flow, count, flags: flags as i32, whole: true }
}

/// How many bytes a read or a write of this number is about, and at which offset.
const fn asked(number: c_long, count: usize, at: usize) -> (usize, Option<u64>) {
    match number {
        libc::SYS_read | libc::SYS_write => (count, None),
        libc::SYS_readv | libc::SYS_writev => (VECTOR, None),
        libc::SYS_pread64 | libc::SYS_pwrite64 => (count, offset(at as i64)),
        _ => (VECTOR, offset(at as i64)),
    }
}

/// The flags of a read or a write of this number, of which two have any.
const fn flags(number: c_long, last: usize) -> c_int {
    if matches!(number, libc::SYS_preadv2 | libc::SYS_pwritev2) { last as c_int } else { 0 }
}

hooks! {
    /// syscall(2), with the seven arguments that it can have.
    fn [syscall] (number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long, real => {
        // SAFETY: the program's own arguments.
        let call = move || unsafe { real(number, a, b, c, d, e, f) };
        let fd = a as i32;
        match number {
            // The most frequent one, in programs that wait for locks by number.
            libc::SYS_futex => call(),
            libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 => {
                read_with_flags(fd, asked(number, c, d), flags(number, f), || call() as isize) as c_long
            }
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                write_with_flags(fd, asked(number, c, d), flags(number, f), || call() as isize) as c_long
            }
            libc::SYS_sendfile => copy::send(fd, b as i32, c as *mut i64, d, |length| {
                // SAFETY: the program's own arguments, or a part of what it asks for.
                unsafe { real(number, a, b, c, length, e, f) as isize }
            }) as c_long,
            libc::SYS_copy_file_range => copy::copy_range((fd, b as *mut i64), c as i32, e, |length| {
                // SAFETY: as above.
                unsafe { real(number, a, b, c, d, length, f) as isize }
            }) as c_long,
            libc::SYS_splice => calls::splice(fd, c as i32, e, f as u32, |length, flags| {
                // SAFETY: as above.
                unsafe { real(number, a, b, c, d, length, flags as usize) as isize }
            }) as c_long,
            libc::SYS_readahead | libc::SYS_io_submit | libc::SYS_io_uring_enter => calls::start_io(call),
            libc::SYS_ioctl => copy::control(fd, b as u64, &|| call() as c_int).into(),
            libc::SYS_fadvise64 => advice::advise(fd, d as c_int, &|| call() as c_int).into(),
            libc::SYS_madvise => {
                memory::advised(a as *mut _, b, c as c_int, &|| call() as c_int).into()
            }
            libc::SYS_mmap => {
                let made = [c as c_int, d as c_int, e as c_int];
                memory::map(a as *mut _, b, made, f as i64, &|| call() as *mut c_void) as c_long
            }
            libc::SYS_munmap => memory::unmap(a as *mut _, b, &|| call() as c_int).into(),
            libc::SYS_sendto | libc::SYS_sendmsg => {
                transfer(numbered(Flow::Up, number, [a, c, d]), |_, _| call() as isize) as c_long
            }
            libc::SYS_recvfrom | libc::SYS_recvmsg => {
                transfer(numbered(Flow::Down, number, [a, c, d]), |_, _| call() as isize) as c_long
            }
            libc::SYS_sendmmsg => send_many(fd, b as *const _, d as i32, || call() as isize) as c_long,
            libc::SYS_recvmmsg => receive_many(fd, b as *const _, d as i32, || call() as isize) as c_long,
            libc::SYS_close => calls::close(fd, || call() as i32).into(),
            libc::SYS_close_range => {
                files::will_close_range(a as u32, b as u32, c as i32);
                call()
            }
            libc::SYS_execve => {
                let target = Target::At(libc::AT_FDCWD, a as *const _);
                exec::execute(c as *const *const _, target, |environment| {
                    // SAFETY: the program's own arguments, with our environment.
                    unsafe { real(number, a, b, environment.cast::<c_void>() as usize, d, e, f) }
                })
            }
            libc::SYS_execveat => {
                let target = Target::At(fd, b as *const _);
                exec::execute(d as *const *const _, target, |environment| {
                    // SAFETY: the program's own arguments, with our environment.
                    unsafe { real(number, a, b, c, environment.cast::<c_void>() as usize, e, f) }
                })
            }
            libc::SYS_getsockopt | libc::SYS_setsockopt => {
                if is_pacing(b as i32, c as i32) {
                    pacing::give_back(fd);
                }
                call()
            }
            libc::SYS_prctl => confinement::by_prctl(a as i32, b, c, call),
            libc::SYS_seccomp => confinement::by_seccomp(a as u32, c, call),
            libc::SYS_ftruncate => calls::truncate(fd, b as i64, || call() as i32).into(),
            _ => numbers::make(number, [a, b, c, d, e], call),
        }
    }
}
