//! Our own data in programs below valgrind(1).

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use discnice_sys::valgrind;
use libc::{Dl_info, Elf64_Ehdr, Elf64_Phdr};

use crate::real::find;

type Dladdr = unsafe extern "C" fn(*const c_void, *mut Dl_info) -> c_int;

/// Has helgrind and drd report nothing about the static data of this library, all of which is atomic.
pub fn leave_own_data_unchecked() {
    if !valgrind::is_running() {
        return;
    }
    let found = find(c"dladdr");
    if found.is_null() {
        return;
    }
    // SAFETY: dladdr(3) has this type.
    let dladdr: Dladdr = unsafe { core::mem::transmute(found) };
    let mut about = Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the address is one of this library's; dladdr fills the struct, and tells 0 where it does not.
    let known = unsafe { dladdr(leave_own_data_unchecked as *const c_void, &raw mut about) } != 0;
    if known && !about.dli_fbase.is_null() {
        // SAFETY: the base is where the dynamic linker mapped the head of this library's file.
        unsafe { each_writable_segment(about.dli_fbase.cast()) };
    }
}

/// # Safety
/// `header` is that of a file that is mapped as its segments say.
unsafe fn each_writable_segment(header: *const Elf64_Ehdr) {
    // SAFETY: the caller vouches for the header, which says where the segments are and how many.
    unsafe {
        let (base, header) = (header.cast::<u8>(), &*header);
        let first = base.wrapping_add(header.e_phoff as usize).cast::<Elf64_Phdr>();
        for place in 0..header.e_phnum as usize {
            let segment = &*first.wrapping_add(place);
            let start = base.wrapping_add(segment.p_vaddr as usize).cast_mut();
            if segment.p_type == libc::PT_LOAD
                && segment.p_flags & libc::PF_W != 0
                && let Some(start) = NonNull::new(start)
            {
                valgrind::leave_unchecked(start, segment.p_memsz as usize);
            }
        }
    }
}
