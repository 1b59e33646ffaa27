//! Our own data in programs below valgrind(1).

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use discnice_sys::valgrind;

use crate::real::find;

/// `Dl_info` of dladdr(3).
#[repr(C)]
struct Information {
    file: *const i8,
    base: *const Header,
    symbol: *const i8,
    address: *const c_void,
}

/// The head of an ELF file, as it is mapped. elf(5)
#[repr(C)]
struct Header {
    before: [u64; 4],
    segments: u64,
    between: [u16; 7],
    size: u16,
    count: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
}

const LOADED: u32 = 1;
const WRITABLE: u32 = 2;

type Dladdr = unsafe extern "C" fn(*const c_void, *mut Information) -> c_int;

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
    let mut about = Information {
        file: ptr::null(),
        base: ptr::null(),
        symbol: ptr::null(),
        address: ptr::null(),
    };
    // SAFETY: the address is one of this library's; dladdr fills the struct, and tells 0 where it does not.
    let known = unsafe { dladdr(leave_own_data_unchecked as *const c_void, &raw mut about) } != 0;
    if known && !about.base.is_null() {
        // SAFETY: the base is where the dynamic linker mapped the head of this library's file.
        unsafe { each_writable_segment(about.base) };
    }
}

/// # Safety
/// `header` is that of a file that is mapped as its segments say.
unsafe fn each_writable_segment(header: *const Header) {
    // SAFETY: the caller vouches for the header, which says where the segments are and how many.
    unsafe {
        let (base, header) = (header.cast::<u8>(), &*header);
        let first = base.wrapping_add(header.segments as usize).cast::<Segment>();
        for place in 0..header.count as usize {
            let segment = &*first.wrapping_add(place);
            let start = base.wrapping_add(segment.address as usize).cast_mut();
            if segment.kind == LOADED
                && segment.flags & WRITABLE != 0
                && let Some(start) = NonNull::new(start)
            {
                valgrind::leave_unchecked(start, segment.memory_size as usize);
            }
        }
    }
}
