//! Programs and libraries are brought into the page cache before they are loaded, where page
//! faults would be a burst under the class's limit. See `discnice_regulator::startup`.

use core::ffi::{CStr, c_char};

use discnice_regulator::startup::ProgramKind;
use discnice_regulator::{Linux, Regulator};

use crate::thread::local;
use crate::{engine, environment};

/// The regulator through which files are brought into the cache.
pub type Loader<'a> = Regulator<'a, Linux>;

/// What is about to be executed in the place of this program.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// A path relative to a directory; it may be anything.
    At(i32, *const c_char),
    /// A C string that libc will look for in `PATH`.
    Named(*const c_char),
    /// An open file.
    Opened(i32),
}

impl Target {
    /// Brings in what it reads to start.
    pub fn bring_in(self, loader: &Loader<'_>) {
        match self {
            Self::At(directory, path) => program_at(directory, path)(loader),
            // SAFETY: libc reads the name next.
            Self::Named(name) => unsafe { command(name)(loader) },
            Self::Opened(_) => {}
        }
    }

    /// What kind of program it is.
    #[must_use]
    pub fn kind(self) -> ProgramKind {
        match self {
            Self::At(directory, path) => discnice_regulator::startup::kind(directory, path),
            Self::Named(name) if name.is_null() => ProgramKind::Unknown,
            Self::Named(name) => {
                // SAFETY: libc reads the name next.
                let name = unsafe { CStr::from_ptr(name) };
                discnice_regulator::startup::kind_of_command(name, search_path())
            }
            Self::Opened(fd) => discnice_regulator::startup::kind_of_opened(fd),
        }
    }
}

/// Brings in the program at a path relative to a directory, which may be anything.
pub fn program_at(directory: i32, path: *const c_char) -> impl FnOnce(&Loader<'_>) {
    move |loader| discnice_regulator::startup::program(loader, &local().thread, directory, path)
}

/// Brings in the program that libc will look for by this name.
///
/// # Safety
/// The name is a C string until the result has been called.
pub unsafe fn command(name: *const c_char) -> impl FnOnce(&Loader<'_>) {
    move |loader| {
        if loader.faults_burst() && !name.is_null() {
            // SAFETY: the caller vouches for the name.
            let name = unsafe { CStr::from_ptr(name) };
            discnice_regulator::startup::command(loader, &local().thread, name, search_path());
        }
    }
}

/// Brings in the library that dlopen(3) will look for by this name.
///
/// # Safety
/// The name is null or a C string.
pub unsafe fn library(name: *const c_char) {
    if let Some(loader) = engine::regulator()
        && loader.faults_burst()
        && !name.is_null()
    {
        // SAFETY: the caller vouches for the name.
        discnice_regulator::startup::library(&loader, &local().thread, unsafe {
            CStr::from_ptr(name)
        });
    }
}

/// The program's variable `PATH`.
fn search_path<'a>() -> Option<&'a [u8]> {
    let mut at = environment::current();
    // SAFETY: the program's environment, read as every getenv(3) does, and as execvp(3) will next.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if let Some(path) = CStr::from_ptr(*at).to_bytes().strip_prefix(b"PATH=") {
                return Some(path);
            }
            at = at.add(1);
        }
    }
    None
}
