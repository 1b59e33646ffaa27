//! Programs built with AddressSanitizer and its shared runtime.
//!
//! The runtime ends the program unless it is the first library in the dynamic linker's list,
//! because a library before it might take its place as allocator (`AsanCheckDynamicRTPrereqs` of
//! compiler-rt and GCC's libsanitizer). We replace none of its functions that matter, but we do
//! come first. Objects without a name it passes over, so in such a program we have none.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use crate::real::find;

/// The public head of the dynamic linker's `struct link_map`, link.h.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
}

/// `Dl_info` of dladdr(3).
#[repr(C)]
struct Information {
    file: *const c_char,
    base: *const c_void,
    symbol: *const c_char,
    address: *const c_void,
}

/// `RTLD_DL_LINKMAP` of dladdr(3).
const WANT_MAP: c_int = 2;
const NO_NAME: &CStr = c"";

type Dladdr1 =
    unsafe extern "C" fn(*const c_void, *mut Information, *mut *mut LinkMap, c_int) -> c_int;

/// Hides our name if the runtime is there; called before any other library's start.
pub fn give_precedence() {
    if find(c"__asan_init").is_null() {
        return;
    }
    let dladdr1 = find(c"dladdr1");
    if dladdr1.is_null() {
        return;
    }
    // SAFETY: glibc's function has this signature.
    let dladdr1 = unsafe { core::mem::transmute::<*mut c_void, Dladdr1>(dladdr1) };
    let mut information = Information {
        file: ptr::null(),
        base: ptr::null(),
        symbol: ptr::null(),
        address: ptr::null(),
    };
    let mut map = ptr::null_mut::<LinkMap>();
    let own = give_precedence as *const c_void;
    // SAFETY: the address is this library's; both results are ours to write.
    let found = unsafe { dladdr1(own, &raw mut information, &raw mut map, WANT_MAP) };
    if found != 0 && !map.is_null() {
        // SAFETY: the map is ours and stays, because a preloaded library is never unloaded, so
        // its name is never freed; no other thread exists yet.
        unsafe { (*map).name = NO_NAME.as_ptr() };
    }
}
