//! libc's functions behind ours.
//!
//! All are looked up once, when the library is loaded: dlsym(3) takes the dynamic linker's lock,
//! which a forked child of a threaded program may find held for ever. And it is slow ([`discnice_interpose::symbols`]).

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use discnice_interpose::symbols::{self, Found, Scope};

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
    static discnice_dlsym: Option<Dlsym>;
}

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

// A weak reference: before glibc 2.34 dlsym is in a library of its own, libdl, and a program that does not use that would
// not start for want of it.
global_asm!(
    ".pushsection .data.rel.ro.discnice_dlsym, \"aw\"",
    ".balign 8",
    ".weak dlsym",
    ".hidden discnice_dlsym",
    ".globl discnice_dlsym",
    "discnice_dlsym: .quad dlsym",
    ".popsection",
);

/// dlsym(3), or null where the program has none.
fn dlsym(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the dynamic linker filled it in before anything of ours ran; the name is a C string, and dlsym may be called from
    // any thread.
    unsafe { discnice_dlsym.map_or(ptr::null_mut(), |dlsym| dlsym(handle, name.as_ptr())) }
}

/// The next definition after this library's, dlsym(3).
const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

/// The first definition anywhere, dlsym(3).
const RTLD_DEFAULT: *mut c_void = ptr::null_mut();

/// One function of libc.
#[derive(Debug)]
pub struct Real {
    name: &'static CStr,
    /// [`symbols::hash`] of it.
    hash: u32,
    /// Apart, so that those of all functions share few cache lines.
    address: &'static AtomicPtr<c_void>,
}

impl Real {
    /// A function that will be looked up by name.
    pub const fn new(name: &'static CStr, address: &'static AtomicPtr<c_void>) -> Self {
        Self { name, hash: symbols::hash(name), address }
    }

    /// Its address, or that of [`missing`].
    #[inline(always)]
    pub fn get(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() { self.look_up() } else { address }
    }

    /// Its address, if it has been looked up.
    #[inline(always)]
    pub fn known(&self) -> Option<*mut c_void> {
        let address = self.address.load(Ordering::Relaxed);
        (!address.is_null()).then_some(address)
    }

    /// Returns true if libc has the function.
    pub fn exists(&self) -> bool {
        self.get() != missing as *mut c_void
    }

    /// The name.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Puts `address` behind our hooks from now on.
    pub fn replace(&self, address: *mut c_void) {
        self.address.store(address, Ordering::Relaxed);
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let address = self.ask();
        self.replace(address);
        address
    }

    /// What dlsym(3) says.
    fn ask(&self) -> *mut c_void {
        let address = dlsym(RTLD_NEXT, self.name);
        if address.is_null() { missing as *mut c_void } else { address }
    }
}

/// The first definition of a symbol in the program that starts, or null.
#[cold]
#[inline(never)]
pub fn find(name: &CStr) -> *mut c_void {
    let (hash, mut first) = (symbols::hash(name), Found::Nothing);
    let whole = symbols::for_each(Scope::All, |tables| {
        if matches!(first, Found::Nothing) {
            first = tables.find(name, hash);
        }
    });
    match first {
        Found::At(address) => address,
        Found::Nothing if whole => ptr::null_mut(),
        _ => dlsym(RTLD_DEFAULT, name),
    }
}

/// Stands for a function that this libc does not have.
extern "C" fn missing() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

/// Sets the program's errno: only where a call of the program's fails.
pub fn set_errno(value: c_int) {
    // SAFETY: libc's per-thread errno is always there.
    unsafe { *__errno_location() = value }
}

/// The program's errno.
pub fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *__errno_location() }
}

unsafe extern "C" {
    // The linker defines these around every section with a name that is a C identifier.
    #[link_name = "__start_discnice_real"]
    static FIRST: c_void;
    #[link_name = "__stop_discnice_real"]
    static END: c_void;
}

/// Looks all of them up.
pub fn look_all_up() {
    let whole = symbols::for_each(Scope::AfterUs, |tables| {
        for_each(|real| {
            if real.known().is_none() {
                match tables.find(real.name, real.hash) {
                    Found::Nothing => {}
                    Found::At(address) => real.replace(address),
                    Found::Other => real.replace(real.ask()),
                }
            }
        });
    });
    for_each(|real| {
        if real.known().is_none() {
            real.replace(if whole { missing as *mut c_void } else { real.ask() });
        }
    });
}

/// Calls `with` for each of them.
pub fn for_each(with: impl Fn(&'static Real)) {
    let mut at = (&raw const FIRST).cast::<&'static Real>();
    let end = (&raw const END).cast::<&'static Real>();
    while at < end {
        // SAFETY: the section is an array of such references, made by the `hook!` macro.
        unsafe {
            with(*at);
            at = at.add(1);
        }
    }
}

/// Defines functions of libc that we call.
macro_rules! reals {
    ($($name:ident = $symbol:expr;)+) => {
        $(
            static $name: $crate::real::Real = {
                // With what else every hook reads: `engine`, `files`.
                #[unsafe(link_section = "discnice_hot")]
                static ADDRESS: core::sync::atomic::AtomicPtr<core::ffi::c_void> =
                    core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());
                $crate::real::Real::new($symbol, &ADDRESS)
            };
            const _: () = {
                #[used]
                #[unsafe(link_section = "discnice_real")]
                static ENTRY: &$crate::real::Real = &$name;
            };
        )+
    };
}
pub(crate) use reals;

reals! {
    FILENO = c"fileno_unlocked";
    DIRFD = c"dirfd";
}

/// The descriptor below a stream of libc's, or -1. fileno(3)
///
/// # Safety
/// `stream` is an open stream.
pub unsafe fn descriptor(stream: *mut c_void) -> c_int {
    // SAFETY: the caller vouches for the stream.
    unsafe { descriptor_by(&FILENO, stream) }
}

/// Returns the descriptor below a directory stream, or -1. dirfd(3)
///
/// # Safety
/// `directory` is an open directory stream.
pub unsafe fn descriptor_of_directory(directory: *mut c_void) -> c_int {
    // SAFETY: the caller vouches for the stream.
    unsafe { descriptor_by(&DIRFD, directory) }
}

/// # Safety
/// `real` is one of the functions that take a stream which `stream` is, and return its descriptor.
unsafe fn descriptor_by(real: &Real, stream: *mut c_void) -> c_int {
    type Descriptor = unsafe extern "C" fn(*mut c_void) -> c_int;
    let before = errno();
    // SAFETY: libc's function has this signature, and the caller vouches for the stream.
    let fd = unsafe { core::mem::transmute::<*mut c_void, Descriptor>(real.get())(stream) };
    // A stream without a descriptor (fmemopen) is no error of the program's.
    set_errno(before);
    fd
}
