//! What the kernel hides: which parts of a file are cached, where files lie, how much memory is free.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{LazyLock, Mutex, PoisonError};

use discnice_graybox::fccd::{Options, residency};
use discnice_graybox::mac::{Grant, gb_alloc};
use discnice_graybox::order::{By, Names, Piece, PlanOptions, order_pieces, plan, rank};
use discnice_graybox::pagecache::Means;

/// Exact, by cachestat(2).
pub const DISCNICE_CACHESTAT: c_int = 0;
/// Exact, by mincore(2).
pub const DISCNICE_MINCORE: c_int = 1;
/// By timed accesses to one byte in every 4 MB.
pub const DISCNICE_PROBE: c_int = 2;
/// Not found out: another user's file, too small to probe.
pub const DISCNICE_UNKNOWN: c_int = 3;

/// Most cached files first.
pub const DISCNICE_BY_CACHED: c_int = 0;
/// As the files lie on the disk.
pub const DISCNICE_BY_LAYOUT: c_int = 1;
/// The cached files, then the others, each as they lie on the disk.
pub const DISCNICE_BY_COMPOSE: c_int = 2;

/// A part of a file, and how many of its bytes are cached.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DiscniceRegion {
    /// First byte.
    pub offset: u64,
    /// Bytes; never 0.
    pub length: u64,
    /// Bytes that are cached, at most `length`.
    pub cached_bytes: u64,
}

/// Finds out which parts of the regular file open at `fd` are in the page cache.
///
/// Writes up to `capacity` regions to `regions`, in file order and without overlap, and to `*count` how
/// many there are in all: if that is more, call again with room for them. Pass a null pointer and 0
/// to learn only the number. If probes are needed, the descriptor's open file loses its
/// read-ahead: open one for this.
///
/// Returns how it was found out (`DISCNICE_CACHESTAT` …; `DISCNICE_UNKNOWN` gives no regions), or the
/// negative of an errno(3) number, and then writes nothing.
///
/// # Safety
/// `regions` is null or has room for `capacity` regions; `count` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_residency(
    fd: c_int,
    regions: *mut DiscniceRegion,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    if fd < 0 || count.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the descriptor stays the caller's: it is used during this call only.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let found = match residency(&file, &Options::default()) {
        Ok(found) => found,
        Err(error) => return code(&error),
    };
    if !regions.is_null() {
        for (at, region) in found.regions.iter().take(capacity).enumerate() {
            let told = DiscniceRegion {
                offset: region.offset,
                length: region.length,
                cached_bytes: region.cached_bytes,
            };
            // SAFETY: the caller promises room for `capacity` regions, and `at` is below it.
            unsafe { regions.add(at).write(told) };
        }
    }
    // SAFETY: not null, and the caller promises a number's room.
    unsafe { count.write(found.regions.len()) };
    match found.means {
        Means::Cachestat => DISCNICE_CACHESTAT,
        Means::Mincore => DISCNICE_MINCORE,
        Means::Probe => DISCNICE_PROBE,
        Means::Unknown => DISCNICE_UNKNOWN,
    }
}

//= gray-box/4.1.3-applications
/// Puts files into the order in which reading them costs the least disk.
///
/// `paths` holds `count` file names, `by` is one of the `DISCNICE_BY_` numbers. Writes to `order` the
/// indices of `paths`, best first, and to `*ordered` how many they are: files that cannot be looked
/// at are left out. Returns 0 or the negative of an errno(3) number, and then writes nothing.
///
/// # Safety
/// `paths` points to `count` texts that end in a zero byte, `order` to room for `count` numbers,
/// `ordered` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_order(
    paths: *const *const c_char,
    count: usize,
    by: c_int,
    order: *mut usize,
    ordered: *mut usize,
) -> c_int {
    let by = match by {
        DISCNICE_BY_CACHED => By::Cached,
        DISCNICE_BY_LAYOUT => By::Layout,
        DISCNICE_BY_COMPOSE => By::Compose,
        _ => return -libc::EINVAL,
    };
    let missing = paths.is_null() || order.is_null();
    if ordered.is_null() || count > 0 && missing || u32::try_from(count).is_err() {
        return -libc::EINVAL;
    }
    // SAFETY: not null if there are any, and the caller promises `count` texts.
    let Some(names) = (unsafe { names_of(paths, count) }) else { return -libc::EINVAL };
    let ranking = rank(&names, by, &mut |_, _| ());
    for (at, index) in ranking.order.iter().enumerate() {
        // SAFETY: a ranking has at most as many entries as there are names.
        unsafe { order.add(at).write(*index as usize) };
    }
    // SAFETY: not null, and the caller promises a number's room.
    unsafe { ordered.write(ranking.order.len()) };
    0
}

/// A part of one of several files.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DiscnicePiece {
    /// Index of its file among the paths.
    pub file: usize,
    /// First byte.
    pub offset: u64,
    /// Bytes; never 0.
    pub length: u64,
    /// Bytes that are cached, at most `length`.
    pub cached_bytes: u64,
}

//= gray-box/4.1.2-list
/// Lists the parts of files in the order in which reading them costs the least disk: those in the cache
/// first, then the others as the files lie on the disk. Each byte of each file is in one part.
///
/// `paths` holds `count` file names. A part has about `unit` bytes; 0 chooses what the disk of the file needs
/// to make up for a seek, as `discnice calibrate` has measured it, else 1 MiB. Parts begin and end at multiples of
/// `align` bytes, the length of a record (0 counts as 1); what is left of a record at the end of a file comes
/// last. Files that cannot be looked at are left out.
///
/// Writes to `*pieces` an array that the caller gives back by `free(3)`, null if there are none, and to
/// `*planned` how many there are. Returns 0 or the negative of an errno(3) number, and then writes nothing.
///
/// # Safety
/// `paths` points to `count` texts that end in a zero byte, `pieces` to a pointer's room and `planned` to a
/// number's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_plan(
    paths: *const *const c_char,
    count: usize,
    unit: u64,
    align: u64,
    pieces: *mut *mut DiscnicePiece,
    planned: *mut usize,
) -> c_int {
    let missing = count > 0 && paths.is_null() || pieces.is_null() || planned.is_null();
    if missing || u32::try_from(count).is_err() {
        return -libc::EINVAL;
    }
    // SAFETY: not null if there are any, and the caller promises `count` texts.
    let Some(names) = (unsafe { names_of(paths, count) }) else { return -libc::EINVAL };
    let options = PlanOptions { access_unit: (unit > 0).then_some(unit), align };
    let found =
        plan(&names, &options, &discnice_graybox::profile::access_unit, &mut |_, _| ()).pieces;
    let bytes = found.len() * size_of::<DiscnicePiece>();
    let mut array = std::ptr::null_mut::<DiscnicePiece>();
    if bytes > 0 {
        // SAFETY: malloc(3) may be called with any length.
        array = unsafe { libc::malloc(bytes) }.cast();
        if array.is_null() {
            return -libc::ENOMEM;
        }
    }
    for (at, piece) in found.iter().enumerate() {
        // SAFETY: the array has room for all that were found.
        unsafe { array.add(at).write(told(piece)) };
    }
    // SAFETY: neither is null, and the caller promises room in both.
    unsafe {
        pieces.write(array);
        planned.write(found.len());
    }
    0
}

//= gray-box/4.1.2-own-pieces
/// Orders parts that the caller has cut, as `discnice_plan` does: those in the cache first.
///
/// `paths` holds `count` file names; `file`, `offset` and `length` of the `*planned` pieces are given, `cached_bytes`
/// is found out. What lies beyond the end of its file is cut off. Parts of which nothing remains, and those
/// of files that cannot be looked at, are left out: `*planned` says how many there are then. Returns 0 or the negative of
/// an errno(3) number, and then writes nothing.
///
/// # Safety
/// `paths` points to `count` texts that end in a zero byte, `planned` to a number, `pieces` to as many pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_order_pieces(
    paths: *const *const c_char,
    count: usize,
    pieces: *mut DiscnicePiece,
    planned: *mut usize,
) -> c_int {
    if planned.is_null() || u32::try_from(count).is_err() {
        return -libc::EINVAL;
    }
    // SAFETY: not null, and the caller promises a number.
    let given = unsafe { *planned };
    if given > 0 && (pieces.is_null() || paths.is_null()) {
        return -libc::EINVAL;
    }
    // SAFETY: the caller promises `count` texts; none is looked at for no pieces.
    let names = unsafe { names_of(paths, if given > 0 { count } else { 0 }) };
    let Some(names) = names else { return -libc::EINVAL };
    let mut wanted = Vec::with_capacity(given);
    for at in 0..given {
        // SAFETY: the caller promises as many pieces.
        let piece = unsafe { *pieces.add(at) };
        match u32::try_from(piece.file) {
            Ok(file) if piece.file < count => wanted.push((file, piece.offset, piece.length)),
            _ => return -libc::EINVAL,
        }
    }
    let found = order_pieces(&names, &wanted, &mut |_, _| ()).pieces;
    for (at, piece) in found.iter().enumerate() {
        // SAFETY: no more are found than were given.
        unsafe { pieces.add(at).write(told(piece)) };
    }
    // SAFETY: not null, and the caller promises a number.
    unsafe { planned.write(found.len()) };
    0
}

/// A piece as C programs see it.
fn told(piece: &Piece) -> DiscnicePiece {
    DiscnicePiece {
        file: piece.file as usize,
        offset: piece.offset,
        length: piece.length,
        cached_bytes: piece.cached_bytes,
    }
}

/// Reads `count` names; `None` if one of them is null.
///
/// # Safety
/// `paths` points to `count` texts that end in a zero byte.
unsafe fn names_of(paths: *const *const c_char, count: usize) -> Option<Names> {
    let mut names = Names::default();
    for at in 0..count {
        // SAFETY: the caller promises `count` pointers.
        let path = unsafe { *paths.add(at) };
        if path.is_null() {
            return None;
        }
        // SAFETY: not null, and the caller promises a terminated text.
        names.push(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    }
    Some(names)
}

/// What was given out, by its first byte's address.
static GRANTS: LazyLock<Mutex<HashMap<usize, Grant>>> = LazyLock::new(Mutex::default);

//= gray-box/4.3.2-gb-alloc
/// Allocates between `min` and `max` bytes, in multiples of `multiple`, as many as fit into memory without
/// paging, and writes their number to `*bytes`. The memory is zero and starts on a page.
///
/// Returns null, and sets errno(3), if less than `min` is there now (`EAGAIN`: ask again after a
/// pause), for a senseless demand (`EINVAL`), or where the promises of this user cannot be kept.
///
/// # Safety
/// `bytes` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_gb_alloc(
    min: usize,
    max: usize,
    multiple: usize,
    bytes: *mut usize,
) -> *mut c_void {
    let failed = |errno: c_int| {
        // SAFETY: the location is the calling thread's own.
        unsafe { *libc::__errno_location() = errno };
        std::ptr::null_mut()
    };
    if bytes.is_null() {
        return failed(libc::EINVAL);
    }
    match gb_alloc(min as u64, max as u64, multiple as u64) {
        Ok(Some(grant)) => {
            // SAFETY: not null, and the caller promises a number's room.
            unsafe { bytes.write(grant.length() as usize) };
            let start = grant.start().as_ptr();
            GRANTS.lock().unwrap_or_else(PoisonError::into_inner).insert(start as usize, grant);
            start.cast()
        }
        Ok(None) => failed(libc::EAGAIN),
        Err(error) => failed(-code(&error)),
    }
}

/// Gives memory from `discnice_gb_alloc` back. Null, and anything else that did not come from there,
/// is let be.
///
/// # Safety
/// The memory is no longer in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_gb_free(start: *mut c_void) {
    let grant = GRANTS.lock().unwrap_or_else(PoisonError::into_inner).remove(&(start as usize));
    drop(grant);
}

fn code(error: &io::Error) -> c_int {
    let invalid = error.kind() == io::ErrorKind::InvalidInput;
    -error.raw_os_error().unwrap_or(if invalid { libc::EINVAL } else { libc::EIO })
}
